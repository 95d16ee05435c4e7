"""A server that sends written-down events, for what the well-behaved servers of the test kit do not say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from events.content import Json


def sse(events: Sequence[Json | str], *, named: bool = False) -> bytes:
    """Return events as a stream; a string is sent as it is. ``named`` adds each one's type as its name."""
    frames = []
    for event in events:
        name = f"event: {event['type']}\n" if named and isinstance(event, dict) else ""
        frames.append(f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return "".join(frames).encode()


@asynccontextmanager
async def raw_server(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> AsyncIterator[str]:
    """Answer each connection's request with a status, headers and ``body``; gives the base URL."""
    named = {"content-type": "text/event-stream", "connection": "close", **(headers or {})}
    lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in named.items())]
    start = "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(length)
        writer.write(start + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
