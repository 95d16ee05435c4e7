"""The three SDK providers against their servers: what a model answers arrives as the same neutral parts."""

from __future__ import annotations

import pytest

from chatfold.testing.servers import Answer, Part, Reasoning, Refusal, Text, ToolCall, Usage
from events.ids import MessageId
from events.messages import FinishReason
from events.messages import Usage as OurUsage
from events.parts import ReasoningPart, TextPart, ToolCallPart
from generation.assemble import Assembler
from generation.prompt_types import ModelRequest
from generation.providers.contract import CallEnd, Finish, Provider, TextDelta, UsageSoFar
from tests.generation.providers.kit import MODEL, NAMES, TOOLS, WEATHER, collect, request, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("name", NAMES)]


async def finish_of(provider: Provider, asked: ModelRequest) -> Finish:
    last = (await collect(provider, asked))[-1]
    assert isinstance(last, Finish)
    return last


async def test_text_arrives_in_deltas_and_ends_once(name: str) -> None:
    async with serving(name, [Answer("Hello, whoever you are.", chunk_size=5)]) as (server, provider):
        parts = await collect(provider, request("hi"))
    deltas = [part.text for part in parts if isinstance(part, TextDelta)]
    assert "".join(deltas) == "Hello, whoever you are."
    assert len(deltas) == 5
    assert [type(part).__name__ for part in parts][-2:] == ["TextEnd", "Finish"]
    assert server.refused == []


async def test_usage_in_four_categories(name: str) -> None:
    usage = Usage(input=100, output=50, cache_read=30, cache_write=20, reasoning=10)
    async with serving(name, [Answer("x", usage=usage)]) as (_, provider):
        finish = await finish_of(provider, request("hi"))
    assert finish.usage == OurUsage(input=100, output=50, cache_read=30, cache_write=20, reasoning=10)
    assert finish.model == MODEL
    assert finish.response_id


async def test_input_is_known_early_where_the_service_says_so(name: str) -> None:
    async with serving(name, [Answer("x", usage=Usage(input=7, output=5))]) as (_, provider):
        parts = await collect(provider, request("hi"))
    early = [part.usage.input for part in parts if isinstance(part, UsageSoFar)]
    assert early == ([] if name == "openai" else [7])


async def test_two_parallel_calls(name: str) -> None:
    calls = [ToolCall("get_weather", {"city": "Paris"}, id="one"), ToolCall("get_weather", {"city": "Rome"}, id="two")]
    said: list[Part] = [Text("Let me see."), *calls]
    async with serving(name, [Answer(said)]) as (server, provider):
        parts = await collect(provider, request("weather?", tools=(WEATHER,)))
    ends = [part for part in parts if isinstance(part, CallEnd)]
    assert [(end.id, end.name, end.arguments) for end in ends] == [
        ("one", "get_weather", '{"city": "Paris"}'),
        ("two", "get_weather", '{"city": "Rome"}'),
    ]
    assert isinstance(parts[-1], Finish)
    assert parts[-1].reason == "tool_calls"
    assert server.refused == []


async def test_a_call_without_arguments_has_an_empty_object(name: str) -> None:
    async with serving(name, [Answer([ToolCall("get_weather", "")])]) as (_, provider):
        parts = await collect(provider, request("weather?", tools=(WEATHER,)))
    assert [part.arguments for part in parts if isinstance(part, CallEnd)] == ["{}"]


async def test_broken_arguments_pass_as_text(name: str) -> None:
    async with serving(name, [Answer([ToolCall("get_weather", '{"city": "Par')])]) as (_, provider):
        parts = await collect(provider, request("weather?", tools=(WEATHER,)))
    assert [part.arguments for part in parts if isinstance(part, CallEnd)] == ['{"city": "Par']


async def test_reasoning_then_text(name: str) -> None:
    async with serving(name, [Answer([Reasoning("First I think."), Text("Then I talk.")])]) as (_, provider):
        assembler = Assembler(TOOLS)
        async for part in provider.stream(request("hi", effort="high")):
            assembler.add(part)
    thought, said = assembler.parts(MessageId("1.0"))
    assert isinstance(thought, ReasoningPart)
    assert thought.text.text == "First I think."
    assert (thought.metadata is not None) == (name != "openai-chat")
    assert isinstance(said, TextPart)
    assert said.text.text == "Then I talk."


async def test_split_surrogate_pairs_are_joined(name: str) -> None:
    parts: list[Part] = [Text("a😀b"), ToolCall("get_weather", '{"city": "🗼"}')]
    async with serving(name, [Answer(parts, split_surrogates=True, chunk_size=1)]) as (_, provider):
        assembler = Assembler(TOOLS)
        shown = [out async for part in provider.stream(request("hi", tools=(WEATHER,))) for out in assembler.add(part)]
    said, call = assembler.parts(MessageId("1.0"))
    assert isinstance(said, TextPart)
    assert (said.text.text, said.repaired) == ("a😀b", ())
    assert isinstance(call, ToolCallPart)
    assert (call.arguments.text, call.repaired) == ('{"city": "🗼"}', ())
    assert "".join(part.text for part in shown if isinstance(part, TextDelta)) == "a😀b"


async def test_a_refusal_explains_itself(name: str) -> None:
    async with serving(name, [Answer([Refusal("That is not for me.")])]) as (_, provider):
        finish = await finish_of(provider, request("hi"))
    assert (finish.reason, finish.explanation) == ("refusal", "That is not for me.")


@pytest.mark.parametrize(
    ("stop", "reason"), [("max_tokens", "length"), ("end", "stop"), ("content_filter", "content_filter")]
)
async def test_why_a_model_stopped(name: str, stop: str, reason: FinishReason) -> None:
    async with serving(name, [Answer("x", stop=stop)]) as (_, provider):  # type: ignore[arg-type]
        finish = await finish_of(provider, request("hi"))
    assert finish.reason == ("refusal" if name == "anthropic" and stop == "content_filter" else reason)


async def test_keep_alives_are_passed_over(name: str) -> None:
    async with serving(name, [Answer("Hello there, friend.", chunk_size=2, ping_every=1)]) as (_, provider):
        parts = await collect(provider, request("hi"))
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "Hello there, friend."
