"""What is said of failures: no secrets, no addresses, no status codes, and never too much."""

from __future__ import annotations

import pytest

from events.content import Json
from generation.classify import ErrorFacts, classify
from generation.error_texts import detail_of, message_for, redact

KINDS = (
    "generic",
    "overloaded",
    "rate_limit",
    "timeout",
    "stream_silence_timeout",
    "auth",
    "config",
    "usage_limit",
    "missing_key",
    "provider_disabled",
    "content_filter",
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-chat", "scripted", "somebody"])
@pytest.mark.parametrize("retryable", [True, False])
@pytest.mark.parametrize("status", [None, 503])
def test_every_message_is_a_sentence_without_its_status(
    kind: str, provider: str, retryable: bool, status: int | None
) -> None:
    message = message_for(kind, provider, retryable=retryable, status=status)
    assert message[0].isupper()
    assert message.endswith(".")
    assert "503" not in message
    assert "{" not in message


def test_what_to_do_is_said_only_where_nothing_is_retried() -> None:
    assert "billing" in message_for("usage_limit", "openai", retryable=False, status=429)
    assert "API key" in message_for("auth", "openai", retryable=False, status=401)
    assert message_for("timeout", "openai", retryable=True, status=None) == "OpenAI is temporarily unavailable."
    assert "timed out" in message_for("timeout", "openai", retryable=False, status=None)
    assert message_for("generic", "openai", retryable=False, status=None) == "The request failed unexpectedly."


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abc123DEF. Find yours",
        "Authorization: Bearer abc123DEF",
        "header bearer abc123DEF was refused",
        "api_key=abc123DEF is wrong",
        '{"password": "abc123DEF"}',
        "see https://user:abc123DEF@host.example/path",
        "key AIzaSyabc123DEF456",
    ],
)
def test_secrets_and_addresses_go(text: str) -> None:
    assert "abc123DEF" not in redact(text)


def test_plain_words_stay() -> None:
    text = "max_tokens: 4096 > 2048, which is the maximum number of tokens for the model"
    assert redact(text) == text


@pytest.mark.parametrize(
    ("body", "text", "auth", "detail"),
    [
        ({"error": {"message": "Too long."}}, "raw", False, "Too long."),
        ({"message": "Too long."}, "raw", False, "Too long."),
        ({"error": "plain"}, "raw", False, "plain"),
        ({"error": {"message": "  "}}, "raw", False, "raw"),
        (None, "raw", False, "raw"),
        (None, "raw", True, None),
        ({"error": {"message": "Wrong key."}}, "raw", True, "Wrong key."),
        (None, "two\nlines", False, None),
        (None, "GET https://a.example failed", False, None),
        ("<html>", "<html>", False, None),
        (None, "Error code: 502", False, None),
        (None, "", False, None),
    ],
)
def test_details(body: Json, text: str, auth: bool, detail: str | None) -> None:
    assert detail_of(body, text, auth=auth) == detail


def test_a_long_detail_is_cut() -> None:
    error = classify(ErrorFacts(provider="openai", status=400, body={"message": "word " * 300}), 0)
    assert error.detail is not None
    assert len(error.detail) <= 500
    assert error.detail.endswith("…")


def test_what_cannot_be_stored_is_replaced() -> None:
    assert redact("bad \ud800 news") == "bad \ufffd news"
