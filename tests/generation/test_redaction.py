"""What debug records do not show: tables of names, and what follows for addresses and bodies of each kind."""

from __future__ import annotations

import json

import pytest

from events.content import Json
from generation.redaction import (
    MARKER,
    hides_header,
    hides_key,
    redact_address,
    redact_body,
    redact_headers,
    redact_json,
)

JSON = "application/json"
SECRET = "sk-1234567890abcdef"
SHOWN_EVENTS = (
    f'event: x\ndata: {{"a": 1}}\n\ndata: {{"apiKey": "{MARKER}"}}\nid: 3\n{MARKER}\ndata: {MARKER}\ndata: [DONE]\n'
)


@pytest.mark.parametrize(
    "name",
    [
        "authorization", "Authorization", "x-api-key", "X-Api-Key", "api-key", "proxy-authorization", "cookie",
        "Cookie", "set-cookie", "x-goog-api-key", "x_api_key",
        "apikey", "my-apikey", "x-auth-token", "x-amz-security-token",
        "x-client-secret", "bearer", "x-bearer-thing", "x-ratelimit-token", "x-tokens-of-somebody",
    ],
)  # fmt: skip
def test_headers_that_are_hidden(name: str) -> None:
    assert hides_header(name)
    assert redact_headers([(name, "value")]) == [(name, MARKER)]


@pytest.mark.parametrize(
    "name",
    [
        "content-type", "user-agent", "request-id", "x-request-id", "retry-after", "retry-after-ms",
        "anthropic-version", "openai-organization",
        "anthropic-ratelimit-requests-limit", "anthropic-ratelimit-tokens-limit",
        "anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset",
        "anthropic-ratelimit-input-tokens-remaining", "Anthropic-RateLimit-Output-Tokens-Reset",
        "anthropic-priority-input-tokens-limit", "x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens", "x-ratelimit-limit-requests", "x-ratelimit-remaining-project-tokens",
    ],
)  # fmt: skip
def test_headers_that_stay(name: str) -> None:
    assert redact_headers([(name, "value")]) == [(name, "value")]


@pytest.mark.parametrize(
    "name",
    [
        "token", "Token", "access_token", "accessToken", "refresh_token", "refreshToken", "id_token", "idToken",
        "auth_token", "session_token", "api_key", "apiKey", "api-key", "APIKEY", "private_key", "privateKey",
        "x-api-key", "secret", "client_secret", "clientSecret", "password", "userPassword", "db_password",
        "authorization", "authorization_token", "proxyAuthorization", "credential", "credentials", "awsCredentials",
    ],
)  # fmt: skip
def test_fields_that_are_hidden(name: str) -> None:
    assert hides_key(name)
    assert redact_json({"in": [{name: "value"}]}) == {"in": [{name: MARKER}]}
    assert redact_json({name: {"deep": [1, 2]}}) == {name: MARKER}


@pytest.mark.parametrize(
    "name",
    [
        "input_tokens", "output_tokens", "max_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
        "reasoning_tokens", "total_tokens", "prompt_tokens", "completionTokens", "max_output_tokens", "tokens", "key",
        "tokenizer", "author", "model", "signature", "encrypted_content", "next_page_token_count",
    ],
)  # fmt: skip
def test_fields_that_stay(name: str) -> None:
    assert redact_json({name: 12}) == {name: 12}


def test_a_field_without_a_value_shows_that_it_has_none() -> None:
    assert redact_json({"token": None, "other": None}) == {"token": None, "other": None}


def test_a_text_that_is_json_is_looked_into() -> None:
    inner = json.dumps({"user": "ann", "password": "hunter2"})
    redacted = redact_json({"arguments": inner, "text": '{"not closed', "list": '[{"api_key": "k"}]'})
    assert redacted == {
        "arguments": json.dumps({"user": "ann", "password": MARKER}),
        "text": '{"not closed',
        "list": json.dumps([{"api_key": MARKER}]),
    }
    whole = '{"city":   "Paris"}'
    assert redact_json({"arguments": whole}) == {"arguments": whole}, "what hides nothing stays as it was"


def test_a_failure_that_quotes_a_credential() -> None:
    body: Json = {"error": {"message": f"Incorrect API key provided: {SECRET}.", "type": "invalid_request_error"}}
    shown = json.dumps(redact_body(json.dumps(body).encode(), JSON, failure=True))
    assert SECRET not in shown
    assert "invalid_request_error" in shown
    assert redact_json(body) == body, "an answer's own words are not searched"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://api.example.com/v1/messages", "https://api.example.com/v1/messages"),
        ("https://ann:pw@api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/v1?version=2&api_key=k", f"https://api.example.com/v1?version=2&api_key={MARKER}"),
        ("https://api.example.com/v1?key=k&alt", f"https://api.example.com/v1?key={MARKER}&alt"),
        ("https://api.example.com/v1?access_token=k#part", f"https://api.example.com/v1?access_token={MARKER}"),
        ("no address", MARKER),
    ],
)
def test_addresses(address: str, shown: str) -> None:
    assert redact_address(address) == shown


@pytest.mark.parametrize(
    ("body", "kind", "shown"),
    [
        (b"", JSON, None),
        (b'{"token": "k", "input_tokens": 3}', JSON, {"token": MARKER, "input_tokens": 3}),
        (b'{"a": 1}', "application/json; charset=utf-8", {"a": 1}),
        (b'{"a": 1}', "", {"a": 1}),
        (b'[{"secret": "k"}]', JSON, [{"secret": MARKER}]),
        (b"<html>password</html>", "text/html", MARKER),
        (b"plain", JSON, MARKER),
        (b'{"a": 1}{"b": 2}', JSON, MARKER),
        (b'{"a": 1}\n{"b": 2}', JSON, MARKER),
        (b'{"a": 1', JSON, MARKER),
        (b"\xff\xfe", JSON, MARKER),
        (
            b'{"a": 1}\n{"token": "k"}\nno json\n\n',
            "application/x-ndjson",
            f'{{"a": 1}}\n{{"token": "{MARKER}"}}\n{MARKER}\n',
        ),
        (
            b'event: x\ndata: {"a": 1}\n\ndata: {"apiKey": "k"}\nid: 3\n: token k\ndata: plain\ndata: [DONE]\n\n',
            "text/event-stream; charset=utf-8",
            SHOWN_EVENTS,
        ),
    ],
)  # fmt: skip
def test_bodies(body: bytes, kind: str, shown: Json) -> None:
    assert redact_body(body, kind) == shown


def test_a_body_that_nests_too_deeply_is_replaced() -> None:
    assert redact_body(b"[" * 100_000 + b"]" * 100_000, JSON) == MARKER
