"""A server that sends written-down events, for what the well-behaved servers of the test kit do not say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
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
async def raw_server(body: bytes) -> AsyncIterator[str]:
    """Answer each connection's request with ``body``; gives the base URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(length)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
