"""What debug records do not show: credentials in headers, addresses and bodies. Pure: tables and what they mean.

A name decides, not a value: what stands under a name that speaks of credentials is replaced whole. Counters of tokens
and the known headers of rate limits stay, though their names have the word. What is no JSON cannot be looked into, and
is replaced whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from events.content import Json
from generation.error_texts import without_secrets

MARKER: Final = "[REDACTED]"

_HEADERS: Final = frozenset(
    {"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie", "set-cookie", "www-authenticate"}
)
_IN_HEADERS: Final = ("api-key", "api_key", "apikey", "token", "secret", "bearer")
_KEPT_HEADERS: Final = frozenset(
    f"{start}-{end}"
    for start in (
        "anthropic-ratelimit-tokens",
        "anthropic-ratelimit-input-tokens",
        "anthropic-ratelimit-output-tokens",
        "anthropic-priority-input-tokens",
        "anthropic-priority-output-tokens",
    )
    for end in ("limit", "remaining", "reset")
) | frozenset(
    f"x-ratelimit-{what}-{tokens}"
    for what in ("limit", "remaining", "reset")
    for tokens in ("tokens", "input-tokens", "output-tokens", "project-tokens", "tokens-usage-based")
)
"""Headers of rate limits: their names speak of tokens that are no credentials."""

_KEYS: Final = frozenset(
    {
        "token", "accesstoken", "refreshtoken", "idtoken", "authtoken", "sessiontoken", "bearertoken", "apitoken",
        "securitytoken", "apikey", "xapikey", "accesskey", "accesskeyid", "secretkey", "privatekey", "signingkey",
        "encryptionkey", "sessionkey", "auth", "bearer", "jwt", "cookie", "setcookie", "passwd", "passphrase",
    }
)  # fmt: skip
"""Names of JSON fields, without case and what is neither letter nor digit: ``accessToken`` is ``access_token``."""
_IN_KEYS: Final = ("secret", "password", "authorization", "credential")

_PLAIN: Final = re.compile(r"[^a-z0-9]")
_NDJSON: Final = frozenset(
    {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
)
_STREAM: Final = "text/event-stream"
_DONE: Final = "[DONE]"
_ADDRESS: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*://)(?:[^/?#@]*@)?([^?#]*)(?:\?([^#]*))?")


def hides_header(name: str) -> bool:
    """Whether a header's value is not shown."""
    lower = name.lower()
    if lower in _HEADERS:
        return True
    return lower not in _KEPT_HEADERS and any(word in lower for word in _IN_HEADERS)


def hides_key(name: str) -> bool:
    """Whether the value of a JSON field, or of a query's parameter, is not shown."""
    plain = _PLAIN.sub("", name.lower())
    return plain in _KEYS or any(word in plain for word in _IN_KEYS)


def redact_headers(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return headers with the values replaced that are not shown."""
    return [(name, MARKER if hides_header(name) else value) for name, value in headers]


def redact_address(address: str) -> str:
    """Return an address without the user in it, and without the values of a query that are not shown."""
    match = _ADDRESS.match(address)
    if match is None:
        return MARKER
    scheme, place, query = match.groups()
    if query is None:
        return f"{scheme}{place}"
    shown = (_parameter(*each.partition("=")) for each in query.split("&"))
    return f"{scheme}{place}?{'&'.join(shown)}"


def _parameter(name: str, equals: str, value: str) -> str:
    hidden = hides_key(name) or name.lower() == "key"  # as some services have it
    return f"{name}{equals}{MARKER}" if hidden and equals else f"{name}{equals}{value}"


def redact_json(value: Json, *, failure: bool = False) -> Json:
    """Return a value with what stands under names of credentials replaced, also within texts that are JSON themselves.

    Args:
        value: The value.
        failure: Whether it tells of a failure: services quote credentials in its texts, which are looked for by form.
    """
    match value:
        case dict():
            return {
                name: MARKER if hides_key(name) and held is not None else redact_json(held, failure=failure)
                for name, held in value.items()
            }
        case list():
            return [redact_json(held, failure=failure) for held in value]
        case str() if value[:1] in {"{", "["}:
            inner = _parsed(value)
            if isinstance(inner, dict | list):
                redacted = redact_json(inner, failure=failure)
                return value if redacted == inner else json.dumps(redacted, ensure_ascii=False)
            return without_secrets(value) if failure else value
        case str() if failure:
            return without_secrets(value)
        case _:
            return value


def redact_body(body: bytes, content_type: str, *, failure: bool = False) -> Json:
    """Return the body of a request or a response, fit to be kept.

    Args:
        body: Its bytes, not compressed.
        content_type: Of its header; the empty text where it has none.
        failure: See ``redact_json``.

    Returns:
        Of JSON the value; of JSON line by line, and of a stream of events, the text with each line redacted; of an
        empty body None; else the marker.
    """
    if not body:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return MARKER
    kind = content_type.partition(";")[0].strip().lower()
    if kind == _STREAM:
        return "\n".join(_event_line(line, failure=failure) for line in text.splitlines())
    if kind in _NDJSON:
        return "\n".join(_line(line, failure=failure) for line in text.splitlines())
    value = _parsed(text)
    return MARKER if value is _NO_JSON else redact_json(value, failure=failure)


def _event_line(line: str, *, failure: bool) -> str:
    field, colon, value = line.partition(":")
    if field != "data" or not colon:
        return line if not line or field in {"event", "id", "retry"} else MARKER
    given = value.removeprefix(" ")
    return f"data: {given if given == _DONE else _line(given, failure=failure)}"


def _line(line: str, *, failure: bool) -> str:
    if not line.strip():
        return line
    value = _parsed(line)
    if value is _NO_JSON:
        return MARKER
    redacted = redact_json(value, failure=failure)
    return line if redacted == value else json.dumps(redacted, ensure_ascii=False)


_NO_JSON: Final[Json] = "\0no JSON"
"""Told apart by identity."""


def _parsed(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON
    return value
