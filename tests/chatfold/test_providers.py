"""Built-in providers with an address of their own: several services in one engine, and what is refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from chatfold import Agent, Engine, InvalidBaseUrl, InvalidValue, UnknownModel, builtin_provider
from chatfold.settings import Settings
from chatfold.testing.servers import Answer, OpenAIChatServer, OpenAIResponsesServer


async def test_a_given_provider_takes_the_place_of_a_built_in_one_and_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "the-hosted-key")
    async with OpenAIChatServer([Answer("From near.")]) as near, OpenAIResponsesServer([Answer("From far.")]) as far:
        local = builtin_provider("openai-chat", base_url=near.base_url, api_key="none")
        agents = [Agent(name="near", model="openai-chat/m"), Agent(name="far", model="openai/m")]
        settings = Settings(base_url=far.base_url)
        async with Engine("memory://", agents, providers={"openai-chat": local}, settings=settings) as engine:
            for name in ("near", "far"):
                await engine.create_chat(name, "Hello.", chat_id=name)
                assert (await engine.settled(name)).messages[-1].message.text == f"From {name}."
        await local.close()
    assert near.refused == far.refused == []
    assert [server.requests[0].headers["authorization"] for server in (near, far)] == [
        "Bearer none",
        "Bearer the-hosted-key",
    ]


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"name": "nope"}, UnknownModel, "nope"),
        ({"name": 5}, InvalidValue, r"\$\.name"),
        ({"name": "openai", "base_url": "localhost:8000"}, InvalidBaseUrl, "http://HOST"),
        ({"name": "openai", "api_key": b"k"}, InvalidValue, r"\$\.api_key"),
        ({"name": "openai", "timeout": 0}, InvalidValue, r"\$\.timeout"),
        ({"name": "openai", "timeout": True}, InvalidValue, r"\$\.timeout"),
        ({"name": "openai", "timeout": float("nan")}, InvalidValue, r"\$\.timeout"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_made(given: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        builtin_provider(**given)
