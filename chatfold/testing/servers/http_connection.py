"""HTTP/1.1 on one connection: h11 speaks the protocol, asyncio moves the bytes.

Owns reading a request, writing a response piece by piece, noticing that the client hung up; knows nothing of models.
"""

import asyncio
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import h11

__all__ = ["HttpConnection", "RawRequest"]

_READ = 65_536
Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as it came over the connection."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class HttpConnection:
    """One client's connection, from the server's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take over an accepted connection."""
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)

    async def next_request(self) -> RawRequest | None:
        """Read the next request whole; None when the client has closed the connection.

        Raises:
            h11.RemoteProtocolError: The client does not speak HTTP.
        """
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        if self._http.our_state is not h11.IDLE:
            return None
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(_READ))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                names = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
                path = head.target.decode("ascii").partition("?")[0]
                return RawRequest(head.method.decode("ascii"), path, names, bytes(body))
            else:
                return None

    async def wait_for_hang_up(self) -> None:
        """Return once the client has closed its side; what it sends until then is kept for the next request."""
        while data := await self._reader.read(_READ):
            self._http.receive_data(data)

    async def start(self, status: int, headers: Headers) -> None:
        """Send the status line and the headers."""
        await self._write(h11.Response(status_code=status, headers=list(headers)))

    async def send(self, data: bytes) -> None:
        """Send a piece of the body, and wait until the transport has room again."""
        await self._write(h11.Data(data=data))

    async def finish(self) -> None:
        """Send the end of the body."""
        await self._write(h11.EndOfMessage())

    async def close(self) -> None:
        """Close the connection; in the middle of a body the client sees it break off, with all that was sent before."""
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except ConnectionError:
            # The client was faster: the connection is closed all the same, which is all that was asked for.
            return

    async def reset(self) -> None:
        """Reset the connection (RST); what was sent before and not yet read may be lost, as the network has it."""
        transport = self._writer.transport
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        await self.close()

    async def _write(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()
