"""Requests and responses that are caught, and how one asks for them. Imports no SDK."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final

MOST_BYTES: Final = 16 << 20
"""Bytes of a response that are kept, about; what comes after them is counted."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request over HTTP and its response, as far as it came.

    Attributes:
        method, url, headers, body: The request.
        status, response_headers: The response; no status where there was none.
        pieces: Its body, as it was received: maybe compressed.
        received: Bytes that were received of it.
    """

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: bytes
    status: int | None = None
    response_headers: list[tuple[str, str]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    received: int = 0


catching: Final[ContextVar[list[Exchange] | None]] = ContextVar("catching", default=None)
"""Where the exchanges of this task are caught; None: nowhere."""
