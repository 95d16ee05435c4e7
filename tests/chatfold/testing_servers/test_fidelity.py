"""What the servers send, byte by byte: it validates against the SDKs' types, events come in the services' order.

The SDKs build their objects without validation; here pydantic validates them, and no field may be unknown to them.
"""

import json
from typing import Any

import httpx2
import pytest
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter

from chatfold.testing.servers import Answer, Fail, Found, Part, Reasoning, Refusal, Search, Stop, Text, ToolCall, Usage
from tests.chatfold.testing_servers.kits import ANTHROPIC, CHAT, KITS, RESPONSES, Kit

STREAMED: dict[str, TypeAdapter[Any]] = {
    "anthropic": TypeAdapter(RawMessageStreamEvent),
    "responses": TypeAdapter(ResponseStreamEvent),
    "chat": TypeAdapter(ChatCompletionChunk),
}
WHOLE: dict[str, type[BaseModel]] = {"anthropic": Message, "responses": Response, "chat": ChatCompletion}
EXTRA = {"reasoning_content", "store"}
"""Sent by compatible servers, and by OpenAI, although OpenAI's types do not have it."""

EVERYTHING: list[Part] = [
    Reasoning("Let me think."),
    Reasoning(),
    Reasoning(redacted=True),
    Text("Some text."),
    ToolCall("add", {"a": 1}),
    ToolCall("now"),
]
ANSWERS: dict[str, Answer] = {
    "everything": Answer(EVERYTHING, usage=Usage(1, 2, 3, 4, 5), ping_every=2),
    "refusal": Answer([Refusal("No.")]),
    "empty": Answer(),
    "no usage": Answer("Hi.", usage=None),
}


async def _raw(kit: Kit, answer: Answer, *, stream: bool, **more: Any) -> str:
    body = {**kit.body, "stream": stream, **more}
    if kit.name == "chat" and stream:
        body["stream_options"] = {"include_usage": True}
    if kit.name == "responses":
        body["include"] = ["reasoning.encrypted_content"]
    headers = {"authorization": "Bearer test", "anthropic-version": "2026-10-21"}
    async with kit.server([answer]) as server, httpx2.AsyncClient(verify=False) as client:
        response = await client.post(f"{server.url}{server.path}", json=body, headers=headers)
    assert response.status_code == 200
    return response.text


def _events(raw: str) -> list[tuple[str, Any]]:
    """Event name and data of each block; comments have neither."""
    events = []
    for block in raw.removesuffix("\n\n").split("\n\n"):
        lines = [line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")]
        fields = {line[0]: line[1] for line in lines}
        if fields:
            data = fields["data"]
            events.append((fields.get("event", ""), data if data == "[DONE]" else json.loads(data)))
    return events


def _unknown(value: object) -> set[str]:
    """Fields that the SDK's types do not have."""
    match value:
        case BaseModel():
            fields = [getattr(value, name) for name in type(value).model_fields]
            return {*(value.model_extra or {}), *(name for field in fields for name in _unknown(field))} - EXTRA
        case list():
            return {name for field in value for name in _unknown(field)}
        case _:
            return set()


@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("stop", ["end", "max_tokens", "content_filter"])
async def test_all_validates(kit: Kit, name: str, stop: Stop) -> None:
    given = ANSWERS[name]
    answer = Answer(given.parts, usage=given.usage, ping_every=given.ping_every, stop=stop)
    for event, data in _events(await _raw(kit, answer, stream=True)):
        if event == "ping" or data == "[DONE]":
            continue
        assert event == ("" if kit.name == "chat" else data["type"])
        assert _unknown(STREAMED[kit.name].validate_python(data)) == set()
    whole = WHOLE[kit.name].model_validate_json(await _raw(kit, answer, stream=False))
    assert _unknown(whole) == set()


SEARCH_TOOLS = {"anthropic": {"type": "web_search_20250305", "name": "web_search"}, "responses": {"type": "web_search"}}


@pytest.mark.parametrize("kit", [ANTHROPIC, RESPONSES], ids=lambda kit: kit.name)
@pytest.mark.parametrize("error", [None, "unavailable"])
async def test_searches_validate(kit: Kit, error: str | None) -> None:
    page = Found("https://a.example")
    answer = Answer([Reasoning("Hm."), Search("rain", [page], error), Text("It rains.", cites=[page])])
    tools = [SEARCH_TOOLS[kit.name]]
    for event, data in _events(await _raw(kit, answer, stream=True, tools=tools)):
        if event != "ping":
            assert event == data["type"]
            assert _unknown(STREAMED[kit.name].validate_python(data)) == set()
    whole = WHOLE[kit.name].model_validate_json(await _raw(kit, answer, stream=False, tools=tools))
    assert _unknown(whole) == set()


async def test_a_pause_validates() -> None:
    answer = Answer([Text("Let me look."), Search("rain", None)], stop="pause")
    raw = await _raw(ANTHROPIC, answer, stream=False, tools=[SEARCH_TOOLS["anthropic"]])
    whole = Message.model_validate_json(raw)
    assert (_unknown(whole), whole.stop_reason) == (set(), "pause_turn")


async def test_the_order_of_anthropic_events() -> None:
    answer = Answer([Reasoning("Hm."), Reasoning(redacted=True), Text("Hi."), ToolCall("a")])
    events = _events(await _raw(ANTHROPIC, answer, stream=True))
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    thinking = ["content_block_start", "ping", "content_block_delta", "content_block_delta", "content_block_stop"]
    call = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"]
    assert [event for event, _ in events] == [
        "message_start",
        *thinking,
        "content_block_start",
        "content_block_stop",
        *block,
        *call,
        "message_delta",
        "message_stop",
    ]
    deltas = [data["delta"]["type"] for event, data in events if event == "content_block_delta"]
    assert deltas == ["thinking_delta", "signature_delta", "text_delta", "input_json_delta", "input_json_delta"]
    assert [data["index"] for event, data in events if event == "content_block_start"] == [0, 1, 2, 3]


async def test_the_order_of_responses_events() -> None:
    answer = Answer([Reasoning("Hm."), Text("Hi."), ToolCall("a")])
    events = _events(await _raw(RESPONSES, answer, stream=True))
    assert [event.removeprefix("response.") for event, _ in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))


async def test_the_order_of_chat_chunks() -> None:
    events = _events(await _raw(CHAT, Answer([Text("Hi."), ToolCall("a"), ToolCall("b")]), stream=True))
    assert events[-1] == ("", "[DONE]")
    choices = [data["choices"][0] for _, data in events[:-1] if data["choices"]]
    assert [sorted(choice["delta"]) for choice in choices] == [
        ["content", "refusal", "role"],
        ["content"],
        *[["tool_calls"]] * 4,
        [],
    ]
    calls = [choice["delta"]["tool_calls"][0] for choice in choices if "tool_calls" in choice["delta"]]
    assert [(call["index"], "id" in call) for call in calls] == [(0, True), (0, False), (1, True), (1, False)]
    assert [choice["finish_reason"] for choice in choices] == [None] * 6 + ["tool_calls"]
    assert [data["usage"] for _, data in events[:-2]] == [None] * 7
    assert events[-2][1]["choices"] == []
    assert events[-2][1]["usage"]["total_tokens"] == 15


@pytest.mark.parametrize("form", ["failed", "error"])
async def test_forms_of_a_failure_in_a_responses_stream(form: Any) -> None:
    answer = Answer("Hello.", fail=Fail(429, "Slow down.", form=form))
    events = _events(await _raw(RESPONSES, answer, stream=True))
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    name, data = events[-1]
    assert name == {"failed": "response.failed", "error": "error"}[form]
    assert STREAMED["responses"].validate_python(data)
    error = data["response"]["error"] if form == "failed" else data
    assert (error["code"], error["message"]) == ("rate_limit_exceeded", "Slow down.")


@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
async def test_keep_alives(kit: Kit) -> None:
    raw = await _raw(kit, Answer("abcdefgh", chunk_size=2, ping_every=2), stream=True)
    if kit.name == "anthropic":
        assert [data for event, data in _events(raw) if event == "ping"] == [{"type": "ping"}] * 3
    else:
        assert raw.count(": keep-alive\n\n") == 2
