"""Counts of tokens that are missing, or no whole numbers, as compatible servers tell them: the answer is kept."""

from __future__ import annotations

import pytest

from events.content import Json
from events.messages import Usage
from generation.providers.contract import Finish
from generation.providers.registry import ProviderSettings, make_provider
from tests.generation.providers.kit import collect, request
from tests.generation.providers.raw import raw_server, sse

pytestmark = pytest.mark.anyio

COUNTS: list[tuple[Json, int | None]] = [
    (12.0, 12),
    (10.5, 11),
    ("12", 12),
    (-7, 0),
    (None, None),
    ("many", None),
    (True, None),
    (float("nan"), None),
    ([], None),
]
"""A count as it is told, and what it means."""


async def usage_of(name: str, *events: Json | str) -> Usage | None:
    async with raw_server(sse(events, named=name != "openai-chat")) as url:
        provider = make_provider(name, ProviderSettings(base_url=url, api_key="k"))
        try:
            end = (await collect(provider, request("hi")))[-1]
        finally:
            await provider.close()
    assert isinstance(end, Finish)
    return end.usage


def messages(start: dict[str, Json], end: dict[str, Json]) -> list[Json]:
    opened: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], **start}
    stopped: Json = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, **end}
    return [{"type": "message_start", "message": opened}, stopped, {"type": "message_stop"}]


def responses(usage: Json) -> Json:
    return {
        "type": "response.completed",
        "sequence_number": 0,
        "response": {
            "id": "r",
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": [],
            "usage": usage,
        },
    }


def chat(usage: Json) -> Json:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}


@pytest.mark.parametrize(("told", "count"), COUNTS, ids=[str(told) for told, _ in COUNTS])
@pytest.mark.parametrize("name", ["anthropic", "openai", "openai-chat"])
async def test_a_count_that_is_odd(name: str, told: Json, count: int | None) -> None:
    usages: dict[str, list[Json | str]] = {
        "anthropic": [*messages({"usage": {"input_tokens": told}}, {"usage": {"output_tokens": 3}})],
        "openai": [responses({"input_tokens": told, "output_tokens": 3})],
        "openai-chat": [chat({"prompt_tokens": told, "completion_tokens": 3}), "[DONE]"],
    }
    assert await usage_of(name, *usages[name]) == Usage(input=count or 0, output=3)


@pytest.mark.parametrize("told", [None, {}, {"total_tokens": 5}, 7, []], ids=str)
@pytest.mark.parametrize("name", ["anthropic", "openai", "openai-chat"])
async def test_no_count_at_all_is_no_usage(name: str, told: Json) -> None:
    usages: dict[str, list[Json | str]] = {
        "anthropic": [*messages({"usage": told}, {"usage": told})],
        "openai": [responses(told)],
        "openai-chat": [chat(told), "[DONE]"],
    }
    assert await usage_of(name, *usages[name]) is None


async def test_usage_that_is_left_out() -> None:
    assert await usage_of("anthropic", *messages({}, {"usage": {"output_tokens": 3}})) == Usage(output=3)
    assert await usage_of("anthropic", *messages({"usage": {"input_tokens": 3}}, {})) == Usage(input=3)
