"""Searches that the services run within an answer, through both SDKs: what is kept of them, and what is handed back.

The servers take back only what they gave out, where it stood.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chatfold.testing.servers import (
    Answer,
    AnthropicServer,
    Found,
    LoopbackServer,
    Reasoning,
    RecordedRequest,
    Reply,
    Search,
    Text,
    ToolCall,
    Usage,
)
from events.parts import Part, ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart
from generation.errors import ProviderError
from generation.live import live_parts
from generation.parts import LiveCall, LiveResult, LiveSource
from generation.providers.anthropic import MOST_PAUSES
from generation.providers.contract import Finish, Provider, UsageSoFar
from generation.providers.native import WebSearch
from tests.generation.providers.kit import Conversation, collect, serving

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("name", ["anthropic", "openai"])
A, B = Found("https://a.example", "A", "It rains."), Found("https://b.example", "B")
THOUGHT = Reasoning("Let me look.")
SEARCHED = Answer([THOUGHT, Search("rain", [A, B]), Text("It rains.", cites=[A, A])])


def talking(provider: Provider) -> Conversation:
    chat = Conversation(provider, effort="high")
    chat.native = (WebSearch(),)
    return chat


def kinds(parts: Sequence[Part]) -> list[type]:
    return [type(part) for part in parts if not isinstance(part, SourcePart)]


def sources(parts: Sequence[Part]) -> set[tuple[str, str | None]]:
    found = [part for part in parts if isinstance(part, SourcePart)]
    assert len({part.source_id for part in found}) == len({part.url.text for part in found}) == len(found)
    return {(part.url.text, part.title and part.title.text) for part in found}


@BOTH
async def test_a_search_is_kept_in_the_answer_and_handed_back(name: str) -> None:
    async with serving(name, [SEARCHED, Answer([THOUGHT, Text("Yes.")]), Answer("Bye.")]) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        parts = await chat.answer()
        assert kinds(parts) == [ReasoningPart, ToolCallPart, ToolResultPart, TextPart]
        call, result = (part for part in parts if isinstance(part, ToolCallPart | ToolResultPart))
        assert isinstance(call, ToolCallPart)
        assert isinstance(result, ToolResultPart)
        assert (call.name, call.runner) == ("web_search", "provider")
        assert (result.provider_executed, result.is_error) == (True, False)
        # Responses tells the titles only of what was cited.
        assert sources(parts) == {(A.url, A.title), (B.url, B.title if name == "anthropic" else None)}
        for text in ("Sure?", "Thanks."):
            chat.say(text)
            await chat.answer()
    assert server.refused == []
    search = (call.provider_call_id,)
    assert [request.seen.searches for request in server.requests] == [(), search, search]


@BOTH
async def test_those_who_watch_see_the_search(name: str) -> None:
    async with serving(name, [SEARCHED]) as (_, provider):
        chat = talking(provider)
        chat.say("Rain?")
        parts = [part for part in await collect(provider, chat.request()) if not isinstance(part, UsageSoFar)]
    shown = [one for part in parts for one in live_parts(part)]
    (call,) = (one for one in shown if isinstance(one, LiveCall))
    (result,) = (one for one in shown if isinstance(one, LiveResult))
    assert (call.name, call.provider_executed) == (result.name, True) == ("web_search", True)
    assert "rain" in call.arguments
    assert {one.url for one in shown if isinstance(one, LiveSource)} == {A.url, B.url}


@BOTH
async def test_a_search_that_failed_is_an_error_and_comes_back(name: str) -> None:
    failed = Answer([Search("rain", None, error="unavailable"), Text("Sorry.")])
    async with serving(name, [failed, Answer("Yes.")]) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        parts = await chat.answer()
        assert [part.is_error for part in parts if isinstance(part, ToolResultPart)] == [True]
        chat.say("Sure?")
        await chat.answer()
    assert server.refused == []
    assert len(server.requests[1].seen.searches) == 1


@BOTH
async def test_several_searches_with_thinking_between_and_a_call_of_ours(name: str) -> None:
    first = Answer(
        [
            THOUGHT,
            Search("rain", [A]),
            Reasoning("More."),
            Search("snow", [B]),
            Text("I ask for the weather, too.", cites=[B]),
            Reasoning("Now."),
            ToolCall("get_weather", {"city": "Paris"}),
        ]
    )
    async with serving(name, [first, Answer([THOUGHT, Text("Sun.")]), Answer("Bye.")]) as (server, provider):
        if isinstance(server, AnthropicServer):
            server.issued.covers = "request"
        chat = talking(provider)
        chat.say("Weather?")
        await chat.answer()
        chat.run_tools()
        await chat.answer()
        chat.say("Thanks.")
        await chat.answer()
    assert server.refused == []
    assert len(server.requests[2].seen.searches) == 2
    assert len(server.requests[2].seen.reasoning) == 4


@BOTH
@pytest.mark.parametrize("stop_after", range(1, 12))
async def test_an_answer_cut_anywhere_can_be_gone_on_from(name: str, stop_after: int) -> None:
    whole = Answer([THOUGHT, Search("rain", [A]), Text("It rains.", cites=[A])], chunk_size=6)
    async with serving(name, [whole, Answer("Here I am.")]) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        await chat.answer(stop_after=stop_after)
        chat.say("Go on.")
        await chat.answer()
    assert server.refused == []


@BOTH
async def test_another_model_gets_none_of_it_and_the_same_one_all_again(name: str) -> None:
    async with serving(name, [SEARCHED, Answer("No."), Answer("Yes.")]) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        await chat.answer()
        model = chat.model
        for other in ("another", model):
            chat.model = other
            chat.say("Sure?")
            await chat.answer()
    assert server.refused == []
    assert [len(request.seen.searches) for request in server.requests] == [0, 0, 1]
    assert [len(request.seen.reasoning) for request in server.requests] == [0, 0, 1]


async def test_a_search_whose_reasoning_cannot_come_back_stays_here_too() -> None:
    async with serving("openai", [SEARCHED, Answer("Yes.")]) as (server, provider):
        chat = talking(provider)
        chat.model = "gpt-4-thinking"  # asked without its encrypted reasoning
        chat.say("Rain?")
        await chat.answer()
        chat.say("Sure?")
        await chat.answer()
    assert server.refused == []
    assert server.requests[1].seen.roles == ("user", "assistant", "user")


# Answers that pause


def paused(*parts: Reasoning | Text | Search | ToolCall, usage: Usage | None = None) -> Answer:
    return Answer([*parts, Search("rain", None)], stop="pause", usage=usage or Usage())


async def one_answer(*script: Reply) -> tuple[LoopbackServer, Conversation, tuple[Part, ...]]:
    """Ask once, then once more, and return what the first answer came to."""
    async with serving("anthropic", [*script, Answer([THOUGHT, Text("Yes.")]), Answer("Bye.")]) as (server, provider):
        assert isinstance(server, AnthropicServer)
        server.issued.covers = "request"
        chat = talking(provider)
        chat.say("Rain?")
        parts = await chat.answer()
        for text in ("Sure?", "Thanks."):
            chat.say(text)
            await chat.answer()
    assert [refused.message for refused in server.refused] == []
    return server, chat, parts


async def test_an_answer_that_pauses_goes_on_and_is_one_answer() -> None:
    server, chat, parts = await one_answer(
        paused(THOUGHT, Text("Let me look."), usage=Usage(input=100, output=10, cache_read=7)),
        Answer(
            [Search(results=[A]), Reasoning("So."), Text("It rains.", cites=[A])],
            usage=Usage(input=120, output=20, cache_write=3),
        ),
    )
    assert kinds(parts) == [ReasoningPart, TextPart, ToolCallPart, ToolResultPart, ReasoningPart, TextPart]
    step = chat.items[1].message.step
    assert step is not None
    assert step.finish_reason == "stop"
    usage = step.usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (220, 30, 7, 3)
    assert (step.context_tokens, step.context) == (123, 123)
    assert [request.seen.roles[-1] for request in server.requests] == ["user", "assistant", "user", "user"]
    assert len(server.requests[2].seen.searches) == 1
    assert len(server.requests[3].seen.reasoning) == 3


async def test_an_answer_may_pause_more_than_once_and_within_a_row_of_searches() -> None:
    again = Answer([Search(results=[A]), Text("More."), Search("snow", None)], stop="pause")
    server, _, parts = await one_answer(paused(), again, Answer([Search(results=[B]), Text("Done.", cites=[B])]))
    assert kinds(parts) == [ToolCallPart, ToolResultPart, TextPart, ToolCallPart, ToolResultPart, TextPart]
    assert sources(parts) == {(A.url, A.title), (B.url, B.title)}
    assert [len(request.seen.searches) for request in server.requests] == [0, 1, 2, 2, 2]


async def test_an_answer_that_never_ends_is_cut_at_its_length() -> None:
    more = [Answer([Search(results=[A]), Text("More."), Search("rain", None)], stop="pause")] * MOST_PAUSES
    server, chat, _ = await one_answer(paused(), *more)
    step = chat.items[1].message.step
    assert step is not None
    assert step.finish_reason == "length"
    assert len(server.requests) == MOST_PAUSES + 3


@pytest.mark.parametrize("cut_after", [0, 1, 2, 99])
async def test_a_cut_after_a_pause_is_worth_a_retry_from_the_start(cut_after: int) -> None:
    rest = Answer([Search(results=[A]), Text("It rains all day long.")], cut_after=cut_after)
    script = [paused(Text("Let me look.")), rest, SEARCHED, Answer("Yes.")]
    async with serving("anthropic", script) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        with pytest.raises(ProviderError) as failed:
            await chat.answer()
        assert failed.value.error.retryable
        await chat.answer()
        chat.say("Sure?")
        await chat.answer()
    assert server.refused == []
    assert [request.seen.roles for request in server.requests[1:3]] == [("user", "assistant"), ("user",)]


@pytest.mark.parametrize("stop_after", range(1, 16))
async def test_an_answer_that_paused_can_be_cut_anywhere(stop_after: int) -> None:
    def script(request: RecordedRequest) -> Reply:
        if "Go on." in request.user_texts:
            return Answer("Here.")
        went_on = Answer([Search(results=[A]), Text("It rains.", cites=[A])])
        return went_on if request.seen.searches else paused(THOUGHT, Text("Let me look."))

    async with serving("anthropic", script) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        await chat.answer(stop_after=stop_after)
        chat.say("Go on.")
        await chat.answer()
    assert server.refused == []


async def test_an_answer_that_pauses_beside_a_call_of_ours_waits_for_its_result() -> None:
    first = Answer([ToolCall("get_weather", {"city": "Paris"}), Search("rain", None)], stop="pause")
    async with serving("anthropic", [first, Answer("Sun.")]) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        await chat.answer()
        step = chat.items[1].message.step
        assert step is not None
        assert step.finish_reason == "tool_calls"
        chat.run_tools()
        await chat.answer()
    assert server.refused == []


@pytest.mark.parametrize("native", [True, False])
async def test_whatever_an_agent_declares_an_answer_that_pauses_goes_on(*, native: bool) -> None:
    script = [Answer("Wait", stop="pause"), Answer(", and see.")]
    async with serving("anthropic", script) as (server, provider):
        chat = Conversation(provider)
        chat.native = (WebSearch(),) if native else ()
        chat.say("Rain?")
        parts = await chat.answer()
    assert server.refused == []
    assert [part.text.text for part in parts if isinstance(part, TextPart)] == ["Wait", ", and see."]


async def test_thinking_alone_is_not_gone_on_with() -> None:
    async with serving("anthropic", [Answer([THOUGHT], stop="pause")]) as (server, provider):
        chat = talking(provider)
        chat.say("Rain?")
        await chat.answer()
        step = chat.items[1].message.step
    assert step is not None
    assert step.finish_reason == "unknown"
    assert len(server.requests) == 1


async def test_usage_of_both_requests_is_told_as_it_comes() -> None:
    script = [paused(usage=Usage(input=100, output=10)), Answer([Search(results=[A]), Text("x")])]
    async with serving("anthropic", script) as (_, provider):
        chat = talking(provider)
        chat.say("Rain?")
        parts = await collect(provider, chat.request())
    early = [(part.usage.input, part.context_tokens) for part in parts if isinstance(part, UsageSoFar)]
    assert early == [(100, None), (110, 10)]
    assert [(part.usage and part.usage.input, part.context_tokens) for part in parts if isinstance(part, Finish)] == [
        (110, 10)
    ]
