"""The OpenAI SDK's client, as both OpenAI protocols use it. Importing this module imports the SDK."""

from __future__ import annotations

import os
from typing import Final
from urllib.parse import urlsplit

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from generation.providers.base_url import check_where
from generation.providers.capture import HOOKS
from generation.providers.transport import transport_timeout

_OWN: Final = ".openai.com"
"""What the names of OpenAI's own hosts end with, those of regions too."""

_KEYLESS: Final = "none"
"""Sent to compatible servers for which no key is set: many want none, and the SDK wants one."""


def other_service(base_url: str | None) -> bool:
    """Whether the SDK will call another service than OpenAI's own: a compatible server, which may differ.

    Args:
        base_url: The given one; None: OPENAI_BASE_URL counts.
    """
    where = base_url if base_url is not None else os.environ.get("OPENAI_BASE_URL")
    if where is None:
        return False
    host = urlsplit(where).hostname or ""
    return not f".{host}".endswith(_OWN)


def make_client(*, base_url: str | None, api_key: str | None, timeout: float) -> AsyncOpenAI | None:
    """Return a client that does not retry, or None where there is no key.

    Args:
        base_url: Where the service is; None: the SDK's default, or OPENAI_BASE_URL.
        api_key: The key; None: OPENAI_API_KEY. A service that is not OpenAI's own may do without.
        timeout: Seconds that the transport waits for data.

    Raises:
        InvalidBaseUrl: The base URL is none.
    """
    check_where(base_url, "OPENAI_BASE_URL")
    key = api_key or os.environ.get("OPENAI_API_KEY") or (_KEYLESS if other_service(base_url) else None)
    if not key:
        return None
    limits = transport_timeout(timeout)
    http = DefaultAsyncHttpxClient(timeout=limits, event_hooks=HOOKS)
    return AsyncOpenAI(base_url=base_url, api_key=key, timeout=limits, max_retries=0, http_client=http)
