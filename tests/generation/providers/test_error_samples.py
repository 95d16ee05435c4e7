"""Errors as the services send them, each through the real SDK: what they are classified as, and what is shown of them.

The samples are data: ``samples/PROVIDER.json`` has a service's usual response headers, and for each error its status,
further headers, and the body (JSON, or a text as it is) or the events of a stream. ``expected`` is what the rules of
error classification make of it; ``retry_after`` is in seconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chatfold.testing.servers.wire import dump
from generation.errors import ClassifiedError, ProviderError
from generation.providers.anthropic import AnthropicProvider
from generation.providers.contract import Provider
from generation.providers.openai_chat import OpenAIChatProvider
from generation.providers.openai_responses import OpenAIResponsesProvider
from tests.generation.providers.kit import NAMES, collect, request
from tests.generation.providers.raw import raw_server, sse

pytestmark = pytest.mark.anyio

NOW = round(datetime(2026, 11, 28, 12, tzinfo=UTC).timestamp() * 1e6)
"""When the answers come: dates in the samples are after it."""

CLASSES: dict[str, Callable[..., Provider]] = {
    "anthropic": AnthropicProvider,
    "openai": OpenAIResponsesProvider,
    "openai-chat": OpenAIChatProvider,
}
HIDDEN = re.compile(
    r"[a-z]+://|sk-|\b(?:req|rs|msg|ws|resp|call|toolu|org|proj|user)[-_]\w*\d|[0-9a-f]{8}-[0-9a-f]{4}-"
)
"""What no text that is shown may have."""


def _read(name: str) -> list[tuple[str, dict[str, Any]]]:
    data = json.loads(Path(__file__).with_name("samples").joinpath(f"{name}.json").read_text(encoding="utf-8"))
    return [(name, {**sample, "headers": data["headers"] | sample.get("headers", {})}) for sample in data["samples"]]


SAMPLES = [each for name in NAMES for each in _read(name)]


def _content(sample: dict[str, Any]) -> tuple[bytes, str]:
    """Return what a sample's server sends, and as what."""
    if "stream" in sample:
        return sse(sample["stream"], named="type" in sample["stream"][0]), "text/event-stream"
    if isinstance(body := sample["body"], str):
        return body.encode(), "text/html" if body.startswith("<") else "text/plain"
    return dump(body), "application/json"


async def _failure(name: str, sample: dict[str, Any]) -> ClassifiedError:
    content, media_type = _content(sample)
    async with raw_server(content, sample["status"], {"content-type": media_type, **sample["headers"]}) as url:
        provider = CLASSES[name](base_url=url, api_key="key-of-the-test", clock=lambda: NOW)
        with pytest.raises(ProviderError) as caught:
            await collect(provider, request("hi"))
        await provider.close()
    return caught.value.error


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[f"{name}: {sample['name']}" for name, sample in SAMPLES])
async def test_an_error_of_the_service(name: str, sample: dict[str, Any]) -> None:
    error, expected = await _failure(name, sample), sample["expected"]
    wait = error.retry_after_us
    assert {
        "kind": error.kind,
        "retryable": error.retryable,
        "detail": error.detail,
        **({"retry_after": wait / 1e6} if wait is not None else {}),
        **({"chain_broken": True} if error.chain_broken else {}),
    } == expected
    assert (error.provider, error.status_code) == (name, sample["status"] if sample["status"] >= 400 else None)
    assert not HIDDEN.search(f"{error.message} {error.detail}")
    assert str(sample["status"]) not in error.message


def test_there_are_thirty_of_each_provider_and_all_kinds() -> None:
    for name in NAMES:
        assert sum(of == name for of, _ in SAMPLES) >= 30
    kinds = {sample["expected"]["kind"] for _, sample in SAMPLES}
    assert kinds >= {"generic", "overloaded", "rate_limit", "timeout", "auth", "config", "usage_limit"}
    assert kinds >= {"provider_disabled", "content_filter"}
