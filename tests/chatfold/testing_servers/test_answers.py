"""Each kind of answer, read by the official SDKs, streamed and in one piece."""

import json

import pytest

from chatfold.testing.servers import Answer, Part, Reasoning, Refusal, Stop, Text, ToolCall, Usage
from tests.chatfold.testing_servers.kits import KITS, Kit

pytestmark = pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
STREAM = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])

STOPS = {
    "anthropic": {"end": "end_turn", "tool_calls": "tool_use", "max_tokens": "max_tokens", "content_filter": "refusal"},
    "responses": {
        "end": "completed",
        "tool_calls": "completed",
        "max_tokens": "max_output_tokens",
        "content_filter": "content_filter",
    },
    "chat": {"end": "stop", "tool_calls": "tool_calls", "max_tokens": "length", "content_filter": "content_filter"},
}


@STREAM
async def test_text(kit: Kit, stream: bool) -> None:
    async with kit.server([Answer("Hello from a model.")]) as server:
        heard = await kit.ask(server, stream=stream)
    assert heard.text == "Hello from a model."
    assert heard.model == kit.body["model"]
    assert heard.stop == STOPS[kit.name]["end"]
    assert heard.usage == Usage(10, 5)
    assert heard.pieces == (["Hello fr", "om a mod", "el."] if stream else [])
    assert server.refused == []


@STREAM
async def test_reasoning_text_and_calls(kit: Kit, stream: bool) -> None:
    parts: list[Part] = [
        Reasoning("Let me see."),
        Text("I add."),
        ToolCall("add", {"a": 1, "b": 2}),
        ToolCall("now", id="call_x"),
    ]
    usage = Usage(input=7, output=11, cache_read=5, cache_write=3, reasoning=2)
    async with kit.server([Answer(parts, usage=usage, id="answer_1", model="other")]) as server:
        heard = await kit.ask(server, stream=stream)
    assert (heard.id, heard.model) == ("answer_1", "other")
    assert (heard.reasoning, heard.text) == ("Let me see.", "I add.")
    assert [name for name, _ in heard.calls.values()] == ["add", "now"]
    assert [json.loads(text.replace("'", '"')) for _, text in heard.calls.values()] == [{"a": 1, "b": 2}, {}]
    assert list(heard.calls)[1] == "call_x"
    assert heard.stop == STOPS[kit.name]["tool_calls"]
    assert heard.usage == usage
    assert server.refused == []


@STREAM
@pytest.mark.parametrize("stop", ["end", "tool_calls", "max_tokens", "content_filter"])
async def test_stops(kit: Kit, stream: bool, stop: Stop) -> None:
    async with kit.server([Answer("So far", stop=stop)]) as server:
        heard = await kit.ask(server, stream=stream)
    assert heard.stop == STOPS[kit.name][stop]
    assert heard.text == "So far"


@STREAM
async def test_a_refusal(kit: Kit, stream: bool) -> None:
    async with kit.server([Answer([Refusal("I will not.")])]) as server:
        heard = await kit.ask(server, stream=stream)
    assert heard.refusal == "I will not."
    assert heard.text == ""
    assert heard.stop == {"anthropic": "refusal", "responses": "completed", "chat": "stop"}[kit.name]


@STREAM
async def test_a_stop_of_the_wire(kit: Kit, stream: bool) -> None:
    async with kit.server([Answer("Hm", wire_stop="something_new")]) as server:
        assert (await kit.ask(server, stream=stream)).stop == "something_new"


@STREAM
async def test_no_usage(kit: Kit, stream: bool) -> None:
    async with kit.server([Answer("Hm", usage=None)]) as server:
        heard = await kit.ask(server, stream=stream)
    assert heard.usage == (Usage(0, 0) if kit.name == "anthropic" else None)


@STREAM
async def test_an_empty_answer(kit: Kit, stream: bool) -> None:
    async with kit.server([Answer()]) as server:
        heard = await kit.ask(server, stream=stream)
    assert (heard.text, heard.calls, heard.pieces) == ("", {}, [])
    assert heard.stop == STOPS[kit.name]["end"]


async def test_deltas_can_split_surrogate_pairs(kit: Kit) -> None:
    async with kit.server([Answer("ab😀c", chunk_size=4, split_surrogates=True)]) as server:
        heard = await kit.ask(server)
    assert heard.pieces == ["ab\ud83d", "\ude00c"]


async def test_broken_arguments_are_streamed_as_they_are(kit: Kit) -> None:
    async with kit.server([Answer([ToolCall("add", '{"a": ')])]) as server:
        heard = await kit.ask(server)
    assert list(heard.calls.values()) == [("add", '{"a": ')]


async def test_call_ids_differ_or_repeat(kit: Kit) -> None:
    twice = [Answer([ToolCall("a"), ToolCall("b")]), Answer([ToolCall("c")])]
    async with kit.server(twice) as server:
        first, second = await kit.ask(server), await kit.ask(server)
        assert len({*first.calls, *second.calls}) == 3
    async with kit.server(twice, repeat_call_ids=True) as server:
        first, second = await kit.ask(server), await kit.ask(server)
        assert (list(first.calls), list(second.calls)) == (["call_1", "call_2"], ["call_1"])


async def test_pings_do_not_disturb(kit: Kit) -> None:
    async with kit.server([Answer("Hello from a model.", ping_every=1)]) as server:
        assert (await kit.ask(server)).text == "Hello from a model."
