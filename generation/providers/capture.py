"""What goes over the wire in a model call, caught for whoever asks within the task that makes the call.

Nothing is caught unless somebody asked: then each request of the task's SDK and its response are noted as they pass,
bytes as they are. What may be shown of them is ``generation.redaction``'s. Importing this module imports the transport.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import httpx2

from generation.providers.exchanges import MOST_BYTES, Exchange, catching


async def _on_request(request: httpx2.Request) -> None:
    caught = catching.get()
    if caught is not None:
        body = await request.aread()
        caught.append(Exchange(request.method, str(request.url), request.headers.multi_items(), body))


async def _on_response(response: httpx2.Response) -> None:
    caught = catching.get()
    if not caught:
        return
    exchange = caught[-1]
    exchange.status = response.status_code
    exchange.response_headers = response.headers.multi_items()
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Caught(response.stream, exchange)


class _Caught(httpx2.AsyncByteStream):
    """A response's bytes, noted as they are read."""

    def __init__(self, stream: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        async for piece in self._stream:
            if exchange.received < MOST_BYTES:
                exchange.pieces.append(piece)
            exchange.received += len(piece)
            yield piece

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


def unpacked(exchange: Exchange) -> bytes:
    """Return a response's body without the compression that it was sent with; as it came where that is damaged."""
    raw = b"".join(exchange.pieces)
    packing = [(name, value) for name, value in exchange.response_headers if name.lower() == "content-encoding"]
    if not packing or not raw:
        return raw
    try:
        return httpx2.Response(200, headers=packing, content=raw).content
    except httpx2.DecodingError:
        return raw


HOOKS: Final[dict[str, list[Callable[..., Awaitable[Any]]]]] = {"request": [_on_request], "response": [_on_response]}
"""To be given to the clients of both SDKs; they cost a look where nothing is caught."""
