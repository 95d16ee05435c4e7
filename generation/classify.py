"""What a failed model call means: facts about the failure in, a classified error out. Pure.

The rules stand in one table in their order; the first that matches wins. The facts come from
``providers.sdk_errors``, which knows the SDKs' exceptions; what is shown of a failure (wording, detail) is made by
``generation.error_texts``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from events.content import Json
from generation.error_texts import (
    CHAIN_MESSAGES,
    chain_message,
    connection_detail,
    detail_of,
    message_for,
    unreachable_message,
)
from generation.errors import ClassifiedError, ErrorKind
from generation.retry import SECOND_US

Transport: TypeAlias = Literal["none", "reset", "timeout", "closed", "cancelled", "deadline", "misused"]
"""What the connection did.

A reset or failed connect, a timeout of the transport, a stream that ended without its last event, a cancellation by the
other side while nobody here cancelled, a deadline of our own, a breach of the protocol that another try repeats.
"""

MAX_WAIT_US: Final = 366 * 86_400 * SECOND_US
"""Longest wait that a provider's Retry-After may ask for; a longer one is cut to this."""


class ErrorFacts(Struct, frozen=True, kw_only=True):
    """Facts about a failed call.

    ``text`` is the exception's own text, ``body`` what the service answered (JSON, or text), ``headers`` have
    lower-case names, ``error_type`` and ``code`` are the service's own words for the error. Where the transport failed,
    ``host`` is the service's (with its port, if one was given), ``cause`` says what happened, and ``connected`` whether
    there was a connection at all.
    """

    provider: str
    text: str = ""
    status: int | None = None
    headers: Mapping[str, str] = {}
    body: Json = None
    error_type: str | None = None
    code: str | None = None
    transport: Transport = "none"
    host: str = ""
    cause: str = ""
    connected: bool = True


class _Verdict(Struct, frozen=True):
    kind: ErrorKind
    retryable: bool
    chain: str = ""


class _Reading(Struct, frozen=True):
    """The facts as the rules read them: one lower-case text, and the status, found or implied."""

    words: str
    status: int | None
    transport: Transport
    config: bool


_CONFIG_WORDS: Final = (
    "invalid model",
    "model not found",
    "model_not_found",
    "unsupported model",
    "context length exceeded",
    "context_length_exceeded",
    "context_exceeded",
    "maximum context length",
    "prompt is too long",
    "malformed config",
)
RETRYABLE_RESETS: Final = {
    "no_error": 0,
    "internal_error": 2,
    "refused_stream": 7,
    "cancel": 8,
    "enhance_your_calm": 11,
}
"""HTTP/2 errors that say nothing against the request: their names in lower case, and their codes."""

_TIMEOUT_WORDS: Final = re.compile(
    r"timeout|timed out|unavailable|connection reset|connection refused|\beof\b|broken pipe|bad gateway|\bclient conn\b"
    r"|goaway|http2 stream closed|use of closed network connection"
    rf"|\b(?:{'|'.join(RETRYABLE_RESETS)}); received from peer"
)
_SERVER_WORDS: Final = ("server error", "server_error")
_USED_UP: Final = ("insufficient_quota", "spend_limit_reached")
"""Codes that say so whatever the status."""
_FILTER_WORDS: Final = (
    "content_filter",
    "content filtering policy",
    "content management policy",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "bio_policy",
    "misalignment_policy_violation",
)
_TYPE_STATUS: Final = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_error": 500,
    "timeout_error": 504,
    "vector_store_timeout": 504,
    "authentication_error": 401,
    "permission_error": 403,
    "billing_error": 402,
    "not_found_error": 404,
    "request_too_large": 413,
}
"""The status that a service would have sent with an error that it reported within a stream."""

_NAMED_STATUS: Final = re.compile(r"\b(?:status(?:[ _]code)?|error code|http(?:/\d(?:\.\d)?)?)[\s:=]{1,3}(\d{3})\b")
_LONE_STATUS: Final = re.compile(
    r"(?<![:\w.#/-])(?<!stream )(?<!stream id )(401|403|408|429|500|502|503|504|529)(?![\w.%])"
)


def _has(words: str, *needles: str) -> bool:
    return any(needle in words for needle in needles)


def _cancelled(r: _Reading) -> _Verdict | None:
    found = _has(r.words, "chat interrupted", "request interrupted", "operation interrupted", "chat was interrupted")
    return _Verdict("generic", retryable=False, chain="cancelled") if found else None


def _chain(r: _Reading) -> _Verdict | None:
    if _has(r.words, "no tool output found for function call"):
        return _Verdict("generic", retryable=False, chain="function_call_output_missing")
    if _has(r.words, "was provided without its required 'reasoning' item"):
        return _Verdict("generic", retryable=False, chain="web_search_reasoning_missing")
    if _has(r.words, "was provided without its required following item"):
        return _Verdict("generic", retryable=False, chain="reasoning_follower_missing")
    return None


def _closed(r: _Reading) -> _Verdict | None:
    return _Verdict("timeout", retryable=True, chain="closed") if r.transport == "closed" else None


def _chain_broken(r: _Reading) -> _Verdict | None:
    found = "previous response with id" in r.words and "not found" in r.words
    return _Verdict("generic", retryable=True, chain="broken") if found else None


def _overloaded(r: _Reading) -> _Verdict | None:
    # The word alone may come from what a request was refused for: it counts where the status does not say otherwise.
    word = "overloaded" in r.words and (r.status is None or r.status == 429 or r.status >= 500)
    return _Verdict("overloaded", retryable=True) if r.status == 529 or word else None


def _usage_limit(r: _Reading) -> _Verdict | None:
    found = _has(r.words, *_USED_UP) or r.status == 402
    if found or (r.status != 429 and _has(r.words, "quota", "billing", "payment required")):
        return _Verdict("usage_limit", retryable=False)
    return None


def _auth(r: _Reading) -> _Verdict | None:
    if r.status == 401 or _has(r.words, "authentication", "unauthorized", "invalid api key", "invalid_api_key"):
        return _Verdict("auth", retryable=False)
    if not r.config and (r.status == 403 or "forbidden" in r.words):
        return _Verdict("auth", retryable=False)
    return None


def _rate_limit(r: _Reading) -> _Verdict | None:
    words = _has(r.words, "rate limit", "rate_limit", "rate-limit", "ratelimit", "too many requests")
    return _Verdict("rate_limit", retryable=True) if not r.config and (r.status == 429 or words) else None


def _disabled(r: _Reading) -> _Verdict | None:
    return _Verdict("provider_disabled", retryable=False) if "provider_disabled" in r.words else None


def _timeout(r: _Reading) -> _Verdict | None:
    if r.config:
        return None
    if r.transport in {"reset", "timeout", "cancelled"} or r.status in {408, 502, 503, 504}:
        return _Verdict("timeout", retryable=True)
    if r.transport == "deadline":
        return _Verdict("timeout", retryable=False)
    if _says_itself(r) and _TIMEOUT_WORDS.search(r.words):
        return _Verdict("timeout", retryable=True)
    return None


def _says_itself(r: _Reading) -> bool:
    """Whether words may say that the service failed: with a status of 4xx they tell of what was refused."""
    return r.status is None or r.status >= 500


def _config(r: _Reading) -> _Verdict | None:
    return _Verdict("config", retryable=False) if r.config else None


def _server(r: _Reading) -> _Verdict | None:
    found = r.status == 500 or (_says_itself(r) and _has(r.words, *_SERVER_WORDS))
    return _Verdict("generic", retryable=True) if found else None


def _content_filter(r: _Reading) -> _Verdict | None:
    return _Verdict("content_filter", retryable=False) if _has(r.words, *_FILTER_WORDS) else None


RULES: Final[tuple[Callable[[_Reading], _Verdict | None], ...]] = (
    _cancelled,
    _chain,
    _closed,
    _chain_broken,
    _overloaded,
    _usage_limit,
    _auth,
    _rate_limit,
    _disabled,
    _timeout,
    _config,
    _server,
    _content_filter,
)
"""The rules in their order. What none of them takes (a cancelled call too) is generic and not tried again."""


def classify(facts: ErrorFacts, now_us: int) -> ClassifiedError:
    """Classify a failed call.

    Args:
        facts: What is known of the failure.
        now_us: The time in microseconds UTC, against which an HTTP date in Retry-After is read.
    """
    reading = _read(facts)
    verdict = next((found for rule in RULES if (found := rule(reading)) is not None), None)
    if verdict is None:
        verdict = _Verdict("generic", retryable=False)
    chain_detail = CHAIN_MESSAGES.get(verdict.chain)
    status = facts.status if facts.status is not None and facts.status >= 400 else None
    if chain_detail is not None and chain_detail[1] is not None:
        detail: str | None = chain_detail[1]
    else:
        detail = detail_of(facts.body, facts.text, auth=verdict.kind == "auth")
    if verdict.kind == "timeout" and facts.cause:
        detail = connection_detail(facts.host, facts.cause, connected=facts.connected)
    if verdict.kind == "timeout" and not facts.connected:
        message = unreachable_message(facts.provider, facts.host, facts.cause)
    elif chain_detail is not None:
        message = chain_message(verdict.chain, facts.provider)
    else:
        message = message_for(verdict.kind, facts.provider, retryable=verdict.retryable, status=status)
    return ClassifiedError(
        kind=verdict.kind,
        message=message,
        detail=detail,
        provider=facts.provider,
        retryable=verdict.retryable,
        status_code=status,
        retry_after_us=retry_after_us(facts.headers, now_us),
        chain_broken=verdict.chain == "broken",
        too_large=facts.code == "context_length_exceeded",
    )


def _read(facts: ErrorFacts) -> _Reading:
    parts = [facts.text, facts.error_type or "", facts.code or "", facts.body if isinstance(facts.body, str) else ""]
    if isinstance(facts.body, dict | list):
        parts.append(_flat(facts.body))
    words = " ".join(parts).lower()
    status = facts.status if facts.status is not None and facts.status >= 400 else None
    if status is None:
        status = _TYPE_STATUS.get(facts.error_type or "") or _TYPE_STATUS.get(facts.code or "")
    if status is None and facts.transport == "none":
        status = status_in(words)
    config = _has(words, *_CONFIG_WORDS) or (status == 404 and "model" in words)
    return _Reading(words, status, facts.transport, config)


def _flat(value: Json, depth: int = 6) -> str:
    """Return the texts within ``value``, so that words are searched in structured details too."""
    if isinstance(value, str):
        return value
    if depth == 0 or not isinstance(value, dict | list):
        return ""
    items = value.values() if isinstance(value, dict) else value
    return " ".join(_flat(item, depth - 1) for item in items)


def status_in(words: str) -> int | None:
    """Find an HTTP status in lower-case text: after a word that announces one, else alone and no port or stream id."""
    named = _NAMED_STATUS.search(words)
    if named is not None and 400 <= int(named.group(1)) <= 599:
        return int(named.group(1))
    lone = _LONE_STATUS.search(words)
    return int(lone.group(1)) if lone is not None else None


def retry_after_us(headers: Mapping[str, str], now_us: int) -> int | None:
    """Return what a service asks to wait, in microseconds.

    ``retry-after-ms`` is read before ``retry-after`` (seconds, or an HTTP date).

    None where there is neither, or where it makes no sense; a date that has passed is 0.
    """
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    wait = _number(lower.get("retry-after-ms"), 1_000)
    if wait is None:
        wait = _number(lower.get("retry-after"), SECOND_US)
    if wait is None and (text := lower.get("retry-after")):
        wait = _date_wait(text, now_us)
    return None if wait is None else min(wait, MAX_WAIT_US)


def _number(text: str | None, unit_us: int) -> int | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return round(min(value * unit_us, MAX_WAIT_US)) if math.isfinite(value) and value >= 0 else None


def _date_wait(text: str, now_us: int) -> int | None:
    try:
        when = parsedate_to_datetime(text)
        at = when.replace(tzinfo=when.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0, round(at * SECOND_US) - now_us)


def context_too_large(error: ClassifiedError) -> bool:
    """Whether a failed call was refused because its prompt was too large for the model.

    The service says so by its code, by 413, or in the words of a 400. No other status counts, whatever its words.
    """
    if error.status_code not in (None, 400, 413):
        return False
    if error.too_large or error.status_code == 413:
        return True
    words = f"{error.message} {error.detail or ''}".lower()
    return error.status_code == 400 and _has(words, "context window", "context length", "context_length", "too long")


_OF_HISTORY: Final = re.compile(
    r"\b(?:input|items?|messages?|history|conversation|reasoning|tool (?:call|output)s?|function_call(?:_output)?)\b"
    r"|previous.response|_missing\b",
    re.IGNORECASE,
)


def as_broken_chain(error: ClassifiedError) -> ClassifiedError:
    """Return the failure of a request that went on from a kept response: broken, if the service refused what it kept.

    What the request itself held was only the user's new messages: the whole history may pass where the service finds
    fault with its own copy. It is sent next, once, since it goes on from nothing.
    """
    refused = error.kind == "generic" and not error.retryable and error.status_code == 400
    if not refused or _OF_HISTORY.search(error.detail or "") is None:
        return error
    return replace(error, message=chain_message("broken", error.provider or ""), retryable=True, chain_broken=True)
