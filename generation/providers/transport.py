"""Timeouts of the transport that both SDKs use. Importing this module imports it, as the SDKs do."""

from __future__ import annotations

from typing import Final

import httpx2

MAX_CONNECT: Final = 10.0
"""Seconds that a connection may take; a service that is up answers sooner."""


def transport_timeout(seconds: float) -> httpx2.Timeout:
    """Return timeouts for a stream: ``seconds`` between two pieces of data, and less to connect."""
    return httpx2.Timeout(seconds, connect=min(seconds, MAX_CONNECT))
