"""A search that one service ran is told to the model of another that writes the summary, as it can take it."""

from __future__ import annotations

import pytest

from chatfold.engine import Engine
from chatfold.testing.servers import Answer, AnthropicServer, LoopbackServer, OpenAIChatServer, OpenAIResponsesServer
from events.vocabulary import CompactionCommitted
from generation.agents import Agent
from generation.providers.anthropic import AnthropicProvider
from generation.providers.registry import ProviderSettings, make_provider
from store.memory import MemoryStore
from tests.generation.providers.kit import MODEL
from tests.generation.providers.raw import raw_server, sse
from tests.generation.providers.test_open_events import SEARCH, START, STOP, ended

SERVERS: dict[str, type[LoopbackServer]] = {
    "anthropic": AnthropicServer,
    "openai": OpenAIResponsesServer,
    "openai-chat": OpenAIChatServer,
}


@pytest.mark.parametrize("service", SERVERS)
async def test_a_summary_by_another_service_knows_what_was_searched_and_found(service: str) -> None:
    searched = sse([START, *SEARCH, ended("end_turn"), STOP], named=True)
    async with raw_server(searched) as url, SERVERS[service]([Answer("They looked it up.")]) as server:
        own = AnthropicProvider(base_url=url, api_key="k")
        other = make_provider(service, ProviderSettings(base_url=server.base_url, api_key="k"))
        agent = Agent(name="a", model=f"searching/{MODEL}", compaction_model=f"other/{MODEL}-small")
        providers = {"searching": own, "other": other}
        try:
            async with Engine(MemoryStore(), [agent], providers=providers) as engine:
                await engine.create_chat("a", "Look up x", chat_id="chat")
                await engine.settled("chat")
                await engine.compact("chat")
                await engine.settled("chat")
                events = [each.event for each in await engine.events("chat")]
        finally:
            await own.close()
            await other.close()
    assert sum(isinstance(event, CompactionCommitted) for event in events) == 1
    assert [(one.status, one.message) for one in server.refused] == []
    (request,) = server.requests
    text = request.raw.decode()
    assert 'web_search was run with {\\"query\\":\\"x\\"}' in text
    assert "https://a.example" in text
    assert "Found." in text
    assert 'encrypted_content\\"' not in text
    assert "srv_1" not in text
