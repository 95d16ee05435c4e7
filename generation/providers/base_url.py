"""Base URLs of services: what is one, and what of one may be shown."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, urlsplit

from generation.errors import InvalidBaseUrl


def check_base_url(url: object, whose: str = "base_url") -> str:
    """Return a base URL under which a service may be found.

    Args:
        url: What was given.
        whose: The setting or variable that it comes from, for the error.

    Raises:
        InvalidBaseUrl: It is not ``http://HOST...`` or ``https://HOST...``, or has a query or a fragment, to which no
            path can be added. The error shows no credentials.
    """
    if not isinstance(url, str):
        raise InvalidBaseUrl(whose, "", f"must be a text, not {type(url).__name__}")
    shown = repr(url) if "@" not in url and len(url) <= 200 else "what was given"
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        raise InvalidBaseUrl(whose, shown, "holds blanks or control characters")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError as error:  # a port that is no number, a broken IPv6 address
        raise InvalidBaseUrl(whose, shown, str(error)) from None
    if not usable:
        raise InvalidBaseUrl(whose, shown, "a service's URL is http://HOST or https://HOST, with a path or without")
    if parts.query or parts.fragment:
        raise InvalidBaseUrl(whose, shown, "a base URL has no query and no fragment: paths are added to it")
    return url


def check_where(base_url: str | None, variable: str) -> None:
    """Check the base URL that an SDK will use: the given one, or else its environment variable's.

    Raises:
        InvalidBaseUrl: It is none.
    """
    if base_url is not None:
        check_base_url(base_url)
    elif (set_outside := os.environ.get(variable)) is not None:
        check_base_url(set_outside, variable)


def host_of(url: str) -> str:
    """Return host and port of a URL, without credentials, path and query; the empty text where it has none."""
    try:
        parts: SplitResult = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    return host if port is None or not host else f"{host}:{port}"
