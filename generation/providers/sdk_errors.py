"""The edge to the SDKs' exceptions: what they raise becomes facts, and these a :class:`ProviderError`.

Both SDKs are generated from one mould, so their exceptions are read by the attributes they share and no SDK is
imported here. What the facts mean is decided in ``generation.classify``.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any, Final

from events.content import Json
from generation.classify import RETRYABLE_RESETS, ErrorFacts, Transport, classify
from generation.error_texts import MAX_READ, cut, message_for, redact
from generation.errors import ClassifiedError, OptionRefused, ProviderError
from generation.providers.base_url import host_of
from store.clock import wall_clock

_DEPTH: Final = 20
"""Levels of an error's body that are read."""
_TELLING: Final = ("error", "errors", "message", "detail", "type", "code")
"""Fields of an error's body that are read first: what an answer repeats beside them may be as large as a request."""


def stream_closed(provider: str) -> ProviderError:
    """Return the error of a stream that ended without its last event."""
    facts = ErrorFacts(provider=provider, transport="closed")
    return ProviderError(classify(facts, 0))


def missing_key(provider: str, why: str = "") -> ProviderError:
    """Return the error of a call without credentials; ``why`` is what the SDK says about them."""
    return ProviderError(
        ClassifiedError(
            kind="missing_key",
            message=message_for("missing_key", provider, retryable=False, status=None),
            detail=cut(redact(why)) or None,
            provider=provider,
        )
    )


def option_refused(provider: str, error: OptionRefused) -> ProviderError:
    """Return the error of a call whose options are none of its transport's, found before anything was sent."""
    return ProviderError(
        ClassifiedError(
            kind="config",
            message=message_for("config", provider, retryable=False, status=None),
            detail=cut(redact(str(error))) or None,
            provider=provider,
        )
    )


def reported(provider: str, *, code: str | None, message: str | None, now_us: int) -> ProviderError:
    """Return the error that a service reported within its stream, by its code and message."""
    body: Json = {"message": message[:MAX_READ]} if message else None
    return ProviderError(classify(ErrorFacts(provider=provider, code=code, body=body), now_us))


def facts_of(exc: BaseException, provider: str) -> ErrorFacts:
    """Read the facts of an exception that an SDK or its transport raised."""
    response = getattr(exc, "response", None)
    status = getattr(exc, "status_code", None)
    headers = getattr(response, "headers", None) or {}
    body = _body(getattr(exc, "body", None))
    named = _named(body)
    transport = _transport(exc)
    failed = transport in {"reset", "timeout"}
    unreached = failed and bool(_names(exc) & _UNREACHED)
    return ErrorFacts(
        host=_host(exc) if failed else "",
        cause=_cause(exc, connecting=unreached) if failed else "",
        connected=not unreached,
        provider=provider,
        text=_misuse(exc) if transport == "misused" else "" if transport != "none" else str(exc)[:MAX_READ],
        status=status if isinstance(status, int) else None,
        headers={str(name).lower(): str(value) for name, value in headers.items()},
        body=body,
        error_type=_word(named.get("type")),
        code=_word(named.get("code")),
        transport=transport,
    )


_UNREACHED: Final = frozenset({"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol"})
"""Exceptions of the transport before there is a connection."""


def _chain(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception and what it comes from, down to the first cause; of a group the first member."""
    seen: set[int] = set()
    link: BaseException | None = exc
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        group = link.exceptions[0] if isinstance(link, BaseExceptionGroup) else None
        link = group or link.__cause__ or link.__context__


def _names(exc: BaseException) -> set[str]:
    return {cls.__name__ for link in _chain(exc) for cls in type(link).__mro__}


def _host(exc: BaseException) -> str:
    """Return the host that was called, by the first request in the chain."""
    for link in _chain(exc):
        try:
            request = getattr(link, "request", None)
        except RuntimeError:  # an exception of the transport without a request
            continue
        if request is not None:
            return host_of(str(request.url))
    return ""


def _cause(exc: BaseException, *, connecting: bool) -> str:
    """Say what the system says of a failed connection."""
    names = _names(exc)
    if "ConnectTimeout" in names:
        return "no connection in time"
    if "TimeoutException" in names:
        return "no data in time"
    for link in reversed(tuple(_chain(exc))):
        if isinstance(link, ssl.SSLError):
            return str(getattr(link, "verify_message", "") or link.reason or link)
        if isinstance(link, socket.gaierror):
            return link.strerror or str(link)
        if isinstance(link, OSError) and link.errno:
            return os.strerror(link.errno)
    return str(tuple(_chain(exc))[-1]) if connecting else ""


def _named(body: Json) -> dict[str, Json]:
    """Return the object within an answer that names its error; some services send a list of answers."""
    if isinstance(body, list) and body:
        body = body[0]
    inner = body.get("error") if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else body if isinstance(body, dict) else {}


def _word(value: Json) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _body(body: Any) -> Json:
    """Return the body as plain JSON, or as text where it is none: no more of it than is read."""
    return _Reader().read(body)


class _Reader:
    """Copies of an error's body what is read: each character counts, and so does each value."""

    def __init__(self) -> None:
        self._left = MAX_READ

    def read(self, value: Any, depth: int = 0) -> Json:
        """Return what is left to read of ``value``; None for what is no JSON, or too deep."""
        self._left -= 1
        if isinstance(value, str):
            text = value[: max(self._left, 0)]
            self._left -= len(text)
            return text
        if isinstance(value, dict):
            return self._members(value, depth + 1) if depth < _DEPTH else None
        if isinstance(value, list | tuple):
            return self._items(value, depth + 1) if depth < _DEPTH else None
        fits = value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < 2**63)
        return value if fits else None

    def _members(self, value: dict[Any, Any], depth: int) -> Json:
        read = dict[str, Json]()
        for key in chain((key for key in _TELLING if key in value), value):
            if self._left <= 0:
                break
            if isinstance(key, str) and key not in read:
                self._left -= len(key)
                read[key] = self.read(value[key], depth)
        return read

    def _items(self, value: Sequence[Any], depth: int) -> Json:
        read = list[Json]()
        for item in value:
            if self._left <= 0:
                break
            read.append(self.read(item, depth))
        return read


def _transport(exc: BaseException) -> Transport:
    """Say what the connection did, by the names of the exception's classes."""
    if isinstance(exc, asyncio.CancelledError):
        return "cancelled"
    names = {cls.__name__ for cls in type(exc).__mro__}
    if names & {"APITimeoutError", "TimeoutException"}:
        return "timeout"
    if names & {"APIConnectionError", "TransportError", "StreamError"} or isinstance(exc, ConnectionError):
        return "misused" if _misuse(exc) else "reset"
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError):
        return "closed"  # an event that was cut in the middle
    return "deadline" if isinstance(exc, TimeoutError) else "none"


_RESET: Final = re.compile(r"<(?:StreamReset|ConnectionTerminated)\b[^<\n]*?error_code:\s*(?:ErrorCodes\.)?(\w+)(.*)")
"""How the transport says which HTTP/2 error a peer or it itself sent."""

_WORTH_A_RETRY: Final = frozenset(said for name, code in RETRYABLE_RESETS.items() for said in (str(code), name.upper()))
"""HTTP/2 errors that say nothing against the request, as the transport says them."""


def _misuse(exc: BaseException) -> str:
    """Say how this side broke the protocol, or what of that kind the other side says; else nothing.

    Another try would fail alike. A header that cannot be sent is not quoted: most often it is the key.
    """
    for link in _chain(exc):
        text = str(link)
        if "LocalProtocolError" in type(link).__name__ and text.startswith("Illegal header"):
            return "a header of the request cannot be sent: look at the key for characters that are none of it"
        found = _RESET.search(text)
        if found is not None and (found[1] not in _WORTH_A_RETRY or "remote_reset:False" in found[2]):
            return f"the connection broke with HTTP/2 error {found[1]}"
    return ""


@asynccontextmanager
async def classified(provider: str, clock: Callable[[], int] = wall_clock) -> AsyncIterator[None]:
    """Turn whatever a call raises within into a :class:`ProviderError`.

    A cancellation of the running task passes through. One that arrives while nobody cancelled this task comes from the
    transport.

    Args:
        provider: The provider's name in model references.
        clock: Gives the time in microseconds UTC.

    Raises:
        ProviderError: The call failed.
    """
    try:
        yield
    except ProviderError:
        raise
    except OptionRefused as exc:
        raise option_refused(provider, exc) from exc
    except asyncio.CancelledError as exc:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise ProviderError(classify(facts_of(exc, provider), clock())) from exc
    except Exception as exc:
        raise ProviderError(classify(facts_of(exc, provider), clock())) from exc
