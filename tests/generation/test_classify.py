"""The table of failures: each row a signal, with what comes of it; and the order of the rules."""

from __future__ import annotations

import pytest

from events.content import Json
from generation.classify import ErrorFacts, Transport, classify, context_too_large, retry_after_us, status_in
from generation.errors import ClassifiedError

NOW = 1_700_000_000_000_000


def verdict(text: str = "", *, status: int | None = None, body: Json = None, **more: str) -> ClassifiedError:
    facts = ErrorFacts(
        provider="openai",
        text=text,
        status=status,
        body=body,
        error_type=more.get("error_type"),
        code=more.get("code"),
    )
    return classify(facts, NOW)


@pytest.mark.parametrize(
    ("text", "status", "kind", "retryable"),
    [
        ("the chat was interrupted", None, "generic", False),
        ("operation interrupted: rate limit", 429, "generic", False),
        ("No tool output found for function call call_1.", 400, "generic", False),
        ("Item 'ws_1' was provided without its required 'reasoning' item: 'rs_1'", 400, "generic", False),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", 400, "generic", False),
        ("Previous response with id 'resp_1' not found.", 400, "generic", True),
        ("x", 529, "overloaded", True),
        ("Overloaded", None, "overloaded", True),
        ("The engine is currently overloaded", 503, "overloaded", True),
        ("an overloaded operator is not allowed", 400, "generic", False),
        ("insufficient_quota", 429, "usage_limit", False),
        ("You exceeded your current quota", 403, "usage_limit", False),
        ("quota exceeded for requests per minute", 429, "rate_limit", True),
        ("Your credit balance is too low. Go to Plans & Billing.", 400, "usage_limit", False),
        ("enforced_spend_limit_reached", 429, "usage_limit", False),
        ("x", 402, "usage_limit", False),
        ("payment required", None, "usage_limit", False),
        ("x", 401, "auth", False),
        ("invalid api key", 400, "auth", False),
        ("Unauthorized", None, "auth", False),
        ("authentication is down", 503, "auth", False),
        ("x", 403, "auth", False),
        ("Forbidden", None, "auth", False),
        ("unsupported model for this account", 403, "config", False),
        ("x", 429, "rate_limit", True),
        ("Too many requests", None, "rate_limit", True),
        ("rate_limit_exceeded", None, "rate_limit", True),
        ("rate-limited: ratelimit", None, "rate_limit", True),
        ("rate limit of the unsupported model", 429, "config", False),
        ("provider_disabled", 409, "provider_disabled", False),
        ("x", 408, "timeout", True),
        ("x", 502, "timeout", True),
        ("x", 503, "timeout", True),
        ("x", 504, "timeout", True),
        ("connection reset by peer", None, "timeout", True),
        ("context deadline: timed out", None, "timeout", True),
        ("connection refused", None, "timeout", True),
        ("service unavailable", None, "timeout", True),
        ("unexpected EOF", None, "timeout", True),
        ("EOF", None, "timeout", True),
        ("the proof thereof", None, "generic", False),
        ("write: broken pipe", None, "timeout", True),
        ("bad gateway", None, "timeout", True),
        ("gateway timeout", None, "timeout", True),
        ("http2: client conn not usable", None, "timeout", True),
        ("http2: server sent GOAWAY", None, "timeout", True),
        ("http2 stream closed", None, "timeout", True),
        ("use of closed network connection", None, "timeout", True),
        ("stream error: stream ID 3; INTERNAL_ERROR; received from peer", None, "timeout", True),
        ("stream error: stream ID 503; REFUSED_STREAM; received from peer", None, "timeout", True),
        ("stream error: stream ID 3; CANCEL; received from peer", None, "timeout", True),
        ("stream error: stream ID 3; ENHANCE_YOUR_CALM; received from peer", None, "timeout", True),
        ("stream error: stream ID 3; NO_ERROR; received from peer", None, "timeout", True),
        ("stream error: stream ID 3; PROTOCOL_ERROR; received from peer", None, "generic", False),
        ("stream error: stream ID 3; FLOW_CONTROL_ERROR; received from peer", None, "generic", False),
        ("stream error: stream ID 3; CANCEL", None, "generic", False),
        ("timed out: malformed config", None, "config", False),
        ("upstream timed out", 500, "timeout", True),
        ("a timeout occurred", 524, "timeout", True),
        ("x", 524, "generic", False),
        ("the value of timeout is wrong", 400, "generic", False),
        ("invalid model", 400, "config", False),
        ("model not found", 400, "config", False),
        ("context length exceeded", 400, "config", False),
        ("context_exceeded", 400, "config", False),
        ("malformed configuration", 400, "config", False),
        ("model_not_found", 404, "config", False),
        ("model: claude-nine", 404, "config", False),
        ("This model's maximum context length is 8192 tokens", 400, "config", False),
        ("prompt is too long: 210000 tokens > 200000 maximum", 400, "config", False),
        ("x", 500, "generic", True),
        ("Internal server error", None, "generic", True),
        ("web server error", 520, "generic", True),
        ("a server error in your schema", 400, "generic", False),
        ("the call was cancelled", None, "generic", False),
        ("Output blocked by content filtering policy", 400, "content_filter", False),
        ("content_filter", 400, "content_filter", False),
        ("content_filter", 500, "generic", True),
        ("x", 400, "generic", False),
        ("x", 404, "generic", False),
        ("x", 422, "generic", False),
        ("", None, "generic", False),
    ],
)
def test_the_rules(text: str, status: int | None, kind: str, retryable: bool) -> None:
    error = verdict(text, status=status)
    assert (error.kind, error.retryable, error.status_code) == (kind, retryable, status)


@pytest.mark.parametrize(
    ("transport", "kind", "retryable"),
    [
        ("closed", "timeout", True),
        ("reset", "timeout", True),
        ("timeout", "timeout", True),
        ("cancelled", "timeout", True),
        ("deadline", "timeout", False),
        ("misused", "generic", False),
    ],
)
def test_what_the_connection_did(transport: Transport, kind: str, retryable: bool) -> None:
    error = classify(ErrorFacts(provider="openai", transport=transport), NOW)
    assert (error.kind, error.retryable) == (kind, retryable)


@pytest.mark.parametrize(
    ("error_type", "kind", "retryable"),
    [
        ("overloaded_error", "overloaded", True),
        ("rate_limit_error", "rate_limit", True),
        ("api_error", "generic", True),
        ("authentication_error", "auth", False),
        ("permission_error", "auth", False),
        ("billing_error", "usage_limit", False),
        ("timeout_error", "timeout", True),
        ("invalid_request_error", "generic", False),
    ],
)
def test_an_error_within_a_stream_says_its_type_instead_of_a_status(
    error_type: str, kind: str, retryable: bool
) -> None:
    error = verdict("x", status=200, error_type=error_type)
    assert (error.kind, error.retryable, error.status_code) == (kind, retryable, None)


def test_words_are_found_in_structured_details() -> None:
    error = verdict(status=400, body={"error": {"message": "no", "details": [{"reason": "insufficient_quota"}]}})
    assert error.kind == "usage_limit"


def test_only_a_broken_chain_is_marked() -> None:
    assert verdict("Previous response with id 'resp_1' not found.", status=400).chain_broken
    assert not verdict("x", status=500).chain_broken


@pytest.mark.parametrize(
    "text",
    [
        "No tool output found for function call call_77.",
        "Item 'ws_77' of type 'web_search_call' was provided without its required 'reasoning' item: 'rs_77'.",
        "Item 'rs_77' of type 'reasoning' was provided without its required following item.",
        "previous response with id 'r_77' not found",
    ],
)
def test_ids_stay_out_of_messages_about_chains(text: str) -> None:
    error = verdict(status=400, body={"error": {"message": text}})
    assert "77" not in f"{error.message}{error.detail}"
    assert error.detail
    assert error.detail.startswith("match=")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("got status 503 from upstream", 503),
        ("status code: 429", 429),
        ("http/1.1 502 bad gateway", 502),
        ("error code: 500 - x", 500),
        ("upstream said 504.", None),
        ("upstream said 504, sorry", 504),
        ("dial 10.0.0.1:503 failed", None),
        ("http://503.example", None),
        ("stream 429 was reset", None),
        ("status 200", None),
        ("nothing here", None),
    ],
)
def test_statuses_in_texts(words: str, status: int | None) -> None:
    assert status_in(words) == status


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3_000_000),
        ({"Retry-After": " 1.5 "}, 1_500_000),
        ({"retry-after-ms": "250", "retry-after": "3"}, 250_000),
        ({"Retry-After-Ms": "0.5"}, 500),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3_000_000),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30_000_000),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:10 GMT"}, 0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 -0000"}, 30_000_000),
        ({"retry-after": "999999999999999999"}, 366 * 86_400 * 1_000_000),
        ({"retry-after": "1e303"}, 366 * 86_400 * 1_000_000),
        ({"retry-after-ms": "1e306"}, 366 * 86_400 * 1_000_000),
    ],
)
def test_retry_after(headers: dict[str, str], wait: int | None) -> None:
    assert retry_after_us(headers, NOW) == wait


@pytest.mark.parametrize(
    ("status", "text", "large"),
    [
        (413, "x", True),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", True),
        (400, "exceeds the context window", True),
        (400, "This model's maximum context length is 8192 tokens.", True),
        (400, "context_length_exceeded", True),
        (400, "x", False),
        (401, "context length", False),
        (429, "context window", False),
        (500, "context length", False),
        (503, "too long", False),
        (None, "too long", False),
    ],
)
def test_a_prompt_that_is_too_large(status: int | None, text: str, large: bool) -> None:
    assert context_too_large(verdict(status=status, body={"message": text})) is large


@pytest.mark.parametrize(("status", "large"), [(400, True), (None, True), (429, False), (503, False)])
def test_a_service_says_by_a_code_of_its_own_that_a_prompt_is_too_large(status: int | None, large: bool) -> None:
    assert context_too_large(verdict("No.", status=status, code="context_length_exceeded")) is large
    assert not context_too_large(verdict("No.", status=status, code="string_above_max_length"))
