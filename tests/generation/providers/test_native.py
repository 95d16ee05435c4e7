"""Tools that a service runs: how they are declared, and what each transport is asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from chatfold import Agent, Engine, ModelConfig
from chatfold.testing import ScriptedProvider
from chatfold.testing.servers import Answer
from events.content import Json
from generation.digests import digest_request
from generation.errors import AgentDeclarationError, OptionRefused, ProviderError
from generation.policy import policy_digest, policy_of
from generation.providers.anthropic_wire import body as anthropic_body
from generation.providers.native import WebSearch, check_native
from generation.providers.openai_chat import OpenAIChatProvider
from generation.providers.openai_wire import chat_body, responses_body
from generation.tools.contract import client_tool
from tests.generation.providers.kit import NAMES, WEATHER, collect, request, serving

A, R, C = NAMES
PLACE = {"city": "Vienna", "country": "AT"}
SENT: list[tuple[str, dict[str, Any], dict[str, Json]]] = [
    (A, {}, {}),
    (A, {"allowed_domains": ["a.example", "b.example/blog"]}, {"allowed_domains": ["a.example", "b.example/blog"]}),
    (A, {"blocked_domains": ("a.example",)}, {"blocked_domains": ["a.example"]}),
    (A, {"max_uses": 2}, {"max_uses": 2}),
    (A, {"user_location": PLACE}, {"user_location": {"type": "approximate", **PLACE}}),
    (R, {}, {}),
    (R, {"allowed_domains": ["a.example"]}, {"filters": {"allowed_domains": ["a.example"]}}),
    (R, {"blocked_domains": ["a.example"]}, {"filters": {"blocked_domains": ["a.example"]}}),
    (R, {"context_size": "low"}, {"search_context_size": "low"}),
    (R, {"user_location": PLACE}, {"user_location": {"type": "approximate", **PLACE}}),
]
OWN: dict[str, dict[str, Json]] = {
    A: {"type": "web_search_20250305", "name": "web_search"},
    R: {"type": "web_search"},
}


def made(name: str, **changes: Any) -> dict[str, Any]:
    asked = msgspec.structs.replace(request("hi", tools=(WEATHER,)), **changes)
    if name == C:
        return chat_body(asked, limit_name="max_tokens")
    return anthropic_body(asked) if name == A else responses_body(asked)


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "declared", "sent"), SENT)
async def test_a_search_is_declared_behind_the_agents_own_tools(
    name: str, declared: dict[str, Any], sent: dict[str, Json]
) -> None:
    asked = msgspec.structs.replace(request("hi", tools=(WEATHER,)), native=(WebSearch(**declared),))
    async with serving(name, [Answer("x")]) as (server, provider):
        await collect(provider, asked)
    assert server.refused == []
    first, last = server.requests[0].body["tools"]
    assert first["name"] == WEATHER.name
    assert last == OWN[name] | sent


@pytest.mark.parametrize("name", [A, R])
def test_it_stands_there_whatever_the_agents_own_tools_are(name: str) -> None:
    native = (WebSearch(),)
    assert [tool["type"] for tool in made(name, tools=(), native=native)["tools"]] == [OWN[name]["type"]]
    assert "tools" not in made(name, tools=())
    unused = made(name, native=native, tool_choice_none=True)
    assert unused["tools"] == made(name, native=native)["tools"]
    assert unused["tool_choice"] in ("none", {"type": "none"})


def test_sources_are_asked_for_where_a_search_is_declared() -> None:
    assert made(R, native=(WebSearch(),))["include"] == [
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
    ]
    assert made(R)["include"] == ["reasoning.encrypted_content"]
    assert made(R, native=(WebSearch(),), model="gpt-4o")["include"] == ["web_search_call.action.sources"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}, "exclude each other: give one"),
    ({"allowed_domains": "a.example"}, "allowed_domains must be a list of domains, not str"),
    ({"allowed_domains": ["https://a.example"]}, "'https://a.example' is no domain: write it as example.com"),
    ({"blocked_domains": ["example"]}, "'example' is no domain"),
    ({"blocked_domains": ["a.example?x=1"]}, "is no domain"),
    ({"blocked_domains": [1]}, "1 is no domain"),
    ({"blocked_domains": [f"a{n}.example" for n in range(101)]}, "may have 100 entries, not 101"),
    ({"max_uses": 0}, "max_uses must be a whole number of at least 1, not 0"),
    ({"max_uses": True}, "max_uses must be a whole number"),
    ({"context_size": "huge"}, "context_size must be one of low, medium, high"),
    ({"user_location": {}}, "one or more of city, region, country, timezone"),
    ({"user_location": {"street": "x"}}, "and not 'street'"),
    ({"user_location": {"city": " "}}, "user_location.city must be a text"),
]


@pytest.mark.parametrize(("declared", "why"), REFUSED, ids=range(len(REFUSED)))
def test_searches_that_cannot_be_declared(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(AgentDeclarationError, match=rf"web_search: .*{why}".replace("?", r"\?")):
        WebSearch(**declared)


@pytest.mark.parametrize(
    ("name", "search", "why"),
    [
        (A, WebSearch(context_size="low"), r"web_search\.context_size: anthropic takes none; openai does"),
        (R, WebSearch(max_uses=1), r"web_search\.max_uses: openai takes none; anthropic does"),
        (C, WebSearch(), r"web_search: openai-chat has no search of its own; anthropic and openai have"),
    ],
)
def test_what_a_transport_cannot_be_told_is_refused(name: str, search: WebSearch, why: str) -> None:
    with pytest.raises(AgentDeclarationError, match=rf"agent 'a': model {name}/m: {why}"):
        Agent(name="a", model=f"{name}/m", provider_tools=[search])
    with pytest.raises(AgentDeclarationError, match=why):
        Agent(name="a", models=[f"{name}/m"], provider_tools=[search])
    with pytest.raises(OptionRefused, match=why):
        made(name, native=(search,))
    assert Agent(name="a", model="mine/m", provider_tools=[search]).provider_tools == (search,)


def test_a_summary_may_be_written_by_who_cannot_search() -> None:
    Agent(name="a", model="anthropic/m", compaction_model="openai-chat/m", provider_tools=[WebSearch(max_uses=1)])
    body = made(C, native=(WebSearch(),), tool_choice_none=True)
    assert [tool["function"]["name"] for tool in body["tools"]] == [WEATHER.name]
    with pytest.raises(AgentDeclarationError, match="openai-chat/m"):  # a chat may choose it, too
        Agent(name="a", models=["openai-chat/m"], compaction_model="openai-chat/m", provider_tools=[WebSearch()])


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ({"provider_tools": WebSearch()}, "provider_tools must be a list, not WebSearch: write"),
        ({"provider_tools": "web_search"}, "provider_tools must be a list, not str"),
        ({"provider_tools": ["web_search"]}, r"provider_tools takes WebSearch\(...\), not str"),
        ({"provider_tools": [WebSearch(), WebSearch()]}, "two tools are called 'web_search'"),
        (
            {"provider_tools": [WebSearch()], "tools": [client_tool("web_search", "Search.", {"type": "object"})]},
            "two tools are called 'web_search'",
        ),
    ],
)
def test_agents_that_cannot_be_declared(agent: dict[str, Any], why: str) -> None:
    with pytest.raises(AgentDeclarationError, match=why):
        Agent(name="a", **agent)


async def test_a_provider_under_another_name_is_checked_when_the_engine_starts() -> None:
    mine = OpenAIChatProvider(base_url="http://127.0.0.1:1", api_key="k")
    agent = Agent(name="a", model=ModelConfig(provider="mine", name="m"), provider_tools=[WebSearch()])
    engine = Engine("memory://", [agent], providers={"mine": mine})
    with pytest.raises(AgentDeclarationError, match="mine/m: web_search: openai-chat has no search"):
        async with engine:
            pass
    await mine.close()


@pytest.mark.anyio
async def test_a_call_that_needs_what_its_transport_has_not_fails_before_it_is_sent() -> None:
    asked = msgspec.structs.replace(request("hi"), native=(WebSearch(),))
    async with serving(C, [Answer("x")]) as (server, provider):
        with pytest.raises(ProviderError) as failed:
            await collect(provider, asked)
    assert (failed.value.error.kind, failed.value.error.retryable) == ("config", False)
    assert server.requests == []


def test_what_is_declared_changes_revision_policy_and_digest_of_the_tools() -> None:
    searches: list[tuple[WebSearch, ...]] = [
        (),
        (WebSearch(),),
        (WebSearch(allowed_domains=["a.example"]),),
        (WebSearch(user_location={"city": "Vienna"}),),
    ]
    agents = [Agent(name="a", model="anthropic/m", provider_tools=each) for each in searches]
    assert len({agent.revision for agent in agents}) == len(agents)
    assert len({policy_digest(policy_of(agent)) for agent in agents}) == len(agents)
    requests = [msgspec.structs.replace(request("hi", tools=(WEATHER,)), native=each) for each in searches]
    assert len({digest_request(each).tools for each in requests}) == len(requests)
    check_native("mine", searches[2])


async def test_the_scripted_model_is_not_asked_to_search() -> None:
    """Where the chat chose it; one that stands in for another provider is asked like that one."""
    agent = Agent(name="a", model="anthropic/m", provider_tools=[WebSearch()])
    stand_in = ScriptedProvider(["It rains."])
    async with Engine("memory://", [agent], providers={"anthropic": stand_in}) as engine:
        await engine.create_chat("a", "Rain?", chat_id="c", model="scripted/one")
        failed = (await engine.settled("c")).control.last_error
        assert failed is not None
        assert failed.kind == "config"
        assert "The model cannot be used: web_search: scripted has no search of its own" in failed.message.text
        await engine.set_model("c", None)
        await engine.resume("c")
        assert (await engine.settled("c")).control.status == "waiting"
    assert stand_in.requests[0].native == (WebSearch(),)
