"""A model service for measuring streams, in a process of its own: it says the same text to whoever asks.

The events are those of the test kit's servers, written down once, so that saying them costs next to nothing. Run as
``python -m tests.benchmarks.stream_service PROVIDER DELTAS SECONDS``: ``SECONDS`` between two deltas, or 0 for all of
them at once. It prints its base URL, and ends when its input does.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chatfold.testing.servers import Answer, Part, Text, anthropic_emit, chat_emit, responses_emit, responses_events
from chatfold.testing.servers.wire import Frame, Ids
from tests.meta.source import ROOT

CHARS: Final = 8
"""Characters of a delta."""

PATHS: Final = {"anthropic": "", "openai": "/v1", "openai-chat": "/v1"}


def frames_of(provider: str, deltas: int) -> list[Frame]:
    """Return the events of an answer in so many deltas."""
    parts: list[Part] = [Text("A delta. "[:CHARS] * deltas)]
    answer = Answer(parts, chunk_size=CHARS)
    if provider == "anthropic":
        return anthropic_emit.events(answer, parts, "msg_1", "bench")
    if provider == "openai-chat":
        return chat_emit.chunks(answer, parts, "chatcmpl-1", "bench", include_usage=True)
    items = responses_emit.output_items(answer, parts, Ids(), ())
    return responses_events.events({"model": "bench", "input": []}, answer, "resp_1", items)


async def serve(provider: str, deltas: int, seconds: float) -> None:
    """Serve until the input ends."""
    frames = frames_of(provider, deltas)
    assert sum(frame.delta for frame in frames) == deltas
    whole = b"".join(b"%x\r\n%s\r\n" % (len(frame.data), frame.data) for frame in frames) + b"0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                lines = asked.lower().split(b"\r\n")
                await reader.readexactly(next(int(line.split(b":")[1]) for line in lines if b"content-length" in line))
                writer.write(head)
                if seconds:
                    await paced(writer)
                else:
                    writer.write(whole)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def paced(writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        next_at = loop.time()
        for frame in frames:
            writer.write(b"%x\r\n%s\r\n" % (len(frame.data), frame.data))
            if frame.delta:
                next_at += seconds
                await asyncio.sleep(next_at - loop.time())
        writer.write(b"0\r\n\r\n")

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
    async with server:
        print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATHS[provider]}", flush=True)
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def service(provider: str, deltas: int, seconds: float = 0.0) -> AsyncIterator[str]:
    """Run the service; gives its base URL."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks.stream_service",
        provider,
        str(deltas),
        str(seconds),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
