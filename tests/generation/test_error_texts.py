"""What is said of failures: no secrets, no addresses, no status codes, and never too much."""

from __future__ import annotations

import re
from random import Random
from typing import Final, get_args

import pytest

from events.content import Json
from generation.classify import ErrorFacts, classify
from generation.error_texts import (
    StreamFault,
    detail_of,
    fit_message,
    given_up,
    message_for,
    redact,
    stream_message,
    without_secrets,
)
from generation.errors import ErrorKind

KINDS = get_args(ErrorKind)


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
        "Authorization: Basic abc123DEF== was refused",
        "Proxy-Authorization: 'Digest username=a, response=abc123DEF'",
        'authorization: Digest username="a", response="abc123DEF"',
        "sent Basic abc123DEF==",
        "client_secret=abc123DEF is wrong",
        "aws_secret_access_key = abc123DEF",
        "OPENAI_API_KEY=abc123DEF",
        "db_password: abc123DEF",
        "bad token: abc123DEF",
        "X-Auth-Token: abc123DEF",
        "x-api-key: abc123DEF",
        "Cookie: lang=en; session=abc123DEF",
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc123DEF",
        "see //user:abc123DEF@host/x",
        "see https://user:a)abc123DEF@host/x",
        "proxy user:abc123DEF@proxy.internal:3128 failed",
        "proxy user:abc123DEF@10.0.0.1:3128 failed",
        '{"password": "two abc123DEF words"}',
        "{'secret': 'two abc123DEF words'}",
        '"password": "two abc123DEF',
        "api key 'abc123DEF' is invalid",
        "-----BEGIN RSA PRIVATE KEY-----\nabc123DEF\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_secrets_and_addresses_go(text: str) -> None:
    assert "abc123DEF" not in redact(text)
    assert "abc123DEF" not in fit_message(text).replace("https://", "//")
    assert redact(redact(text)) == redact(text)


def test_keys_are_known_by_their_form() -> None:
    assert redact("AKIAIOSFODNN7EXAMPLE denied") == "[redacted] denied"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Item 'rs_68b14140ab' of type 'reasoning'", "Item '[id]' of type 'reasoning'"),
        ("Duplicate item found with id msg_0c3876fc.", "Duplicate item found with id [id]."),
        ("fc_12ab34, ws_12ab34, resp_12ab34, call_2_3_0, toolu_01AbCd", "[id], [id], [id], [id], [id]"),
        ("in organization org-a1b2c3D4 on tokens", "in organization [id] on tokens"),
        ("limit of your organization (0dccdde6-f924-4f1b-bb3b-92ef846e0a5b)", "limit of your organization ([id])"),
        ("include the request ID fb94b183e8b7bc5aca22 in it", "include the request ID [id] in it"),
        ("Request id: req_1332ed8a813a", "Request id: [id]"),
        ('{"request_id": "req_011CbrFT"}', '{"request_id": "[id]"}'),
        ("traceId=0af7651916cd43dd8448", "traceId=[id]"),
    ],
)
def test_ids_go(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 4096 > 2048, which is the maximum number of tokens for the model",
        "messages.0.content.1: call_id is missing, msg_type and user_location are unknown",
        "the model claude-sonnet-4-5-20250929 has no web_search_20250305",
        "a call-by-call, file-based, org-wide request id is wanted",
        "prompt_tokens: 4096, completion token: 12, unexpected token: '<'",
        "Basic authentication is needed; a password, a secret, a cookie or a token is missing",
        "write to support@service.example, model claude-sonnet-4-5@20250929 at 127.0.0.1:8080",
    ],
)
def test_plain_words_stay(text: str) -> None:
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
        ([{"error": {"code": 400, "message": "Too long."}}], "raw", False, "Too long."),
        ({"errors": [{"message": "Too long."}, {"message": "Too late."}]}, "raw", False, "Too long."),
        ([], "raw", False, "raw"),
        (None, 'POST "https://a.example/v1": 429 Too Many Requests {"message": "Slow."}', False, "Slow."),
        (None, 'POST "https://a.example/v1": 400 Bad Request\n{"error": {"message": "No."}}', True, "No."),
        (None, 'POST "https://a.example/v1": 502 Bad Gateway', False, "502 Bad Gateway"),
        (None, 'POST "https://a.example/v1": 502 Bad Gateway {"mess', False, "502 Bad Gateway"),
        ("no healthy upstream", "Error code: 503", False, "no healthy upstream"),
        ("no healthy upstream", "Error code: 401", True, None),
        ({"detail": "Too long."}, "Error code: 422", False, "Too long."),
        ({"reason": 7}, "Error code: 400 - {'reason': 7}", False, None),
        (None, "Error code: 502", False, None),
        (None, "", False, None),
    ],
)
def test_details(body: Json, text: str, auth: bool, detail: str | None) -> None:
    assert detail_of(body, text, auth=auth) == detail


@pytest.mark.parametrize("fault", ["not_begun", "silent", "no_output", "no_summary"])
def test_a_fault_of_a_stream_names_whose_it_was(fault: StreamFault) -> None:
    assert stream_message(fault, "anthropic").startswith("Anthropic ")
    assert stream_message(fault, "somebody").startswith("The AI provider ")


@pytest.mark.parametrize(("attempts", "said"), [(1, "1 attempt;"), (26, "26 attempts;")])
def test_who_gives_up_says_after_how_many_attempts(attempts: int, said: str) -> None:
    assert given_up("OpenAI is temporarily overloaded.", attempts) == (
        f"OpenAI is temporarily overloaded. Given up after {said} try again later."
    )


def test_a_long_detail_is_cut() -> None:
    error = classify(ErrorFacts(provider="openai", status=400, body={"message": "word " * 300}), 0)
    assert error.detail is not None
    assert len(error.detail) <= 500
    assert error.detail.endswith("…")


def test_what_cannot_be_stored_is_replaced() -> None:
    assert redact("bad \ud800 news") == "bad \ufffd news"


@pytest.mark.parametrize(
    "text", ["at http://h/x?key=sk-abcdefgh12345678 now", "at https://h/req_0123456789abc/sk-abcdefgh12345678?a=1 now"]
)
def test_what_was_taken_out_of_an_address_goes_with_it(text: str) -> None:
    assert redact(text) == "at [address] now"


def test_addresses_are_found_as_one_would_write_it_down() -> None:
    plain, random = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+", re.IGNORECASE), Random(1)
    pieces = ["a", "Z", "7", "+", ".", "-", "_", "é", "/", ":", "://", "://", "http", "<"]
    texts = ["".join(random.choices(pieces, k=random.randrange(2, 14))) for _ in range(5000)]
    assert sum(plain.search(text) is not None for text in texts) > 500
    assert [redact(text) for text in texts] == [plain.sub("[address]", text) for text in texts]


HOSTILE: Final = (
    *(
        "secret_",
        "secret-a ",
        "password",
        "api_key ",
        "api key '",
        'api key "',
        "token:",
        "token",
        "token:1",
        "cookie=",
    ),
    *("cookie=a;", "cookie=; ", "authorization:a,b=", "basic a", "basic aaaaaaaa", "eyJ-", "eyJ.", "eyJaaaaaaaaaaaa."),
    *("//a:", "//", "a:a", "a:", ":", "a:b.@", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-", "AKIA"),
    *("secret='", 'secret="', "secret: ", "secret" + " " * 50, " ", "key provided "),
)


@pytest.mark.parametrize("piece", ["a.", "req-", "secret ", "bearer ", "request id ", "a://", *HOSTILE])
def test_a_long_text_is_looked_through_once(piece: str) -> None:
    """Each word of it might begin something, and what began again at each of them would take hours."""
    text = piece * (600_000 // len(piece))
    assert len(redact(text)) <= len(text)
    assert without_secrets(text)
