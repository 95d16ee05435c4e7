"""Messages and Responses: events, blocks and items beside those of a plain chat, as the services send them."""

from __future__ import annotations

import pytest

from chatfold.testing.servers import Answer, Fail
from events.content import Content, Json
from events.ids import MessageId
from events.messages import Message, Usage
from events.parts import ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart
from generation.assemble import Assembler
from generation.errors import ProviderError
from generation.prompt_types import PromptCall, PromptMessage, PromptResult, PromptText
from generation.providers.anthropic import AnthropicProvider
from generation.providers.anthropic_wire import wire_messages
from generation.providers.contract import CallEnd, Finish, Provider, TextDelta, TextEnd
from generation.providers.openai_responses import OpenAIResponsesProvider
from tests.generation.providers.kit import MODEL, AnyPart, Conversation, collect, request, serving
from tests.generation.providers.raw import raw_server, sse

pytestmark = pytest.mark.anyio

START: Json = {
    "type": "message_start",
    "message": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    },
}
STOP: Json = {"type": "message_stop"}


def ended(reason: str) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}}


def block(index: int, start: dict[str, Json], *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


async def anthropic_parts(*events: Json) -> list[AnyPart]:
    async with raw_server(sse(events, named=True)) as url:
        provider = AnthropicProvider(base_url=url, api_key="k")
        parts = await collect(provider, request("hi"))
        await provider.close()
        return parts


async def responses_parts(*events: Json) -> list[AnyPart]:
    numbered: list[Json] = [
        {**event, "sequence_number": index} for index, event in enumerate(events) if isinstance(event, dict)
    ]
    async with raw_server(sse(numbered, named=True)) as url:
        provider = OpenAIResponsesProvider(base_url=url, api_key="k")
        parts = await collect(provider, request("hi"))
        await provider.close()
        return parts


def assembled(parts: list[AnyPart]) -> Assembler:
    assembler = Assembler({})
    for part in parts:
        assembler.add(part)
    return assembler


SEARCH: list[Json] = [
    *block(
        0,
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"query":'},
        {"type": "input_json_delta", "partial_json": '"x"}'},
    ),
    *block(
        1,
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_1",
            "content": [
                {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "e"}
            ],
        },
    ),
    *block(
        2,
        {"type": "text", "text": ""},
        {"type": "text_delta", "text": "Found."},
        {
            "type": "citations_delta",
            "citation": {
                "type": "web_search_result_location",
                "url": "https://a.example",
                "title": "A",
                "cited_text": "x",
                "encrypted_index": "i",
            },
        },
    ),
]


async def test_a_search_that_the_service_runs_is_kept_and_handed_back() -> None:
    parts = await anthropic_parts(START, *SEARCH, ended("end_turn"), STOP)
    kept = assembled(parts).parts(MessageId("2.0"))
    assert [type(part) for part in kept] == [ToolCallPart, ToolResultPart, SourcePart, TextPart]
    call, result = kept[0], kept[1]
    assert isinstance(call, ToolCallPart)
    assert (call.runner, call.arguments.text) == ("provider", '{"query":"x"}')
    assert isinstance(result, ToolResultPart)
    assert (result.call, result.provider_executed) == ("2.0.0", True)
    chat = Conversation(AnthropicProvider(base_url="http://127.0.0.1:1", api_key="k"))
    chat.say("hi")
    chat.add(Message(role="assistant", parts=kept, step=assembled(parts).step("anthropic", MODEL)))
    chat.say("more")
    sent = wire_messages(chat.request())[1]["content"]
    assert [part["type"] for part in sent] == ["server_tool_use", "web_search_tool_result", "text"]
    assert sent[0]["input"] == {"query": "x"}
    assert sent[1]["content"][0]["encrypted_content"] == "e"
    assert [cited["encrypted_index"] for cited in sent[2]["citations"]] == ["i"]
    chat.model = "another"
    told, said = wire_messages(chat.request())[1]["content"]
    assert told["text"].startswith('[web_search was run with {"query":"x"}. Its result:]\n[{')
    assert "https://a.example" in told["text"]
    assert "encrypted_content" not in told["text"]
    assert said == {"type": "text", "text": "Found."}


async def test_kinds_that_are_not_known_yet_are_passed_over() -> None:
    parts = await anthropic_parts(
        START,
        {"type": "shiny_event", "value": 1},
        *block(0, {"type": "shiny_block", "value": 1}, {"type": "shiny_delta", "value": 1}),
        *block(1, {"type": "text", "text": "a"}, {"type": "text_delta", "text": "b"}),
        ended("pause_turn"),
        STOP,
    )
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == "ab"
    last = parts[-1]
    assert isinstance(last, Finish)
    assert (last.reason, last.metadata) == ("unknown", {"stop_reason": "pause_turn"})
    assert last.usage == Usage(input=3, output=5)


async def test_messages_without_its_last_event_was_cut() -> None:
    with pytest.raises(ProviderError) as caught:
        await anthropic_parts(START, *block(0, {"type": "text", "text": "a"}), ended("end_turn"))
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)


def response(status: str, **more: Json) -> Json:
    return {"id": "r1", "model": MODEL, "status": status, "output": [], **more}


def done(index: int, item: Json) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


async def test_items_that_come_without_deltas() -> None:
    parts = await responses_parts(
        done(0, {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        done(
            1,
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
            },
        ),
        done(2, {"type": "shiny_item", "id": "x_1"}),
        {"type": "response.completed", "response": response("completed")},
    )
    texts = [part.text for part in parts if isinstance(part, TextDelta)]
    assert texts == ["Yes."]
    end = next(part for part in parts if isinstance(part, TextEnd))
    assert end.metadata == {"provider": "openai", "model": MODEL, "data": {"phase": "commentary"}}
    assert isinstance(parts[-1], Finish)
    assert (parts[-1].reason, parts[-1].usage) == ("stop", None)


async def test_parts_of_a_summary_are_told_apart() -> None:
    parts = await responses_parts(
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "A"},
        {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "B"},
        done(0, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e", "status": "completed"}),
        {"type": "response.completed", "response": response("completed")},
    )
    (thought,) = assembled(parts).parts(MessageId("1.0"))
    assert isinstance(thought, ReasoningPart)
    assert thought.text.text == "A\n\nB"
    assert thought.metadata == Content(
        {
            "provider": "openai",
            "model": MODEL,
            "data": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
            "after": None,
        }
    )


async def test_responses_without_its_last_event_was_cut() -> None:
    with pytest.raises(ProviderError) as caught:
        await responses_parts({"type": "response.created", "response": response("in_progress")})
    assert (caught.value.error.kind, caught.value.error.retryable) == ("timeout", True)


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", "generic", True),
        ("rate_limit_exceeded", "rate_limit", True),
        ("invalid_prompt", "generic", False),
        ("insufficient_quota", "usage_limit", False),
    ],
)
async def test_a_response_that_failed(code: str, kind: str, retryable: bool) -> None:
    failed: Json = response("failed", error={"code": code, "message": "It failed."})
    with pytest.raises(ProviderError) as caught:
        await responses_parts({"type": "response.failed", "response": failed})
    error = caught.value.error
    assert (error.kind, error.retryable, error.detail) == (kind, retryable, "It failed.")


async def test_both_forms_of_a_failure_within_responses() -> None:
    for form in ("failed", "error"):
        reply = Answer("Hello.", fail=Fail(429, form=form), fail_after=1)
        async with serving("openai", [reply]) as (_, provider):
            with pytest.raises(ProviderError) as caught:
                await collect(provider, request("hi"))
        assert (caught.value.error.kind, caught.value.error.retryable) == ("rate_limit", True)


async def test_overload_within_messages() -> None:
    async with serving("anthropic", [Answer("Hello.", fail=Fail(529), fail_after=1)]) as (_, provider):
        with pytest.raises(ProviderError) as caught:
            await collect(provider, request("hi"))
    assert (caught.value.error.kind, caught.value.error.status_code) == ("overloaded", None)


def test_providers_fit_the_contract() -> None:
    providers: list[Provider] = [
        AnthropicProvider(base_url="http://127.0.0.1:1", api_key="k"),
        OpenAIResponsesProvider(base_url="http://127.0.0.1:1", api_key="k"),
    ]
    assert [provider.name for provider in providers] == ["anthropic", "openai"]


def test_a_foreign_search_is_told_as_text() -> None:
    call = PromptCall(id="c", name="web_search", arguments="{}", provider_executed=True)
    result = PromptResult(id="c", name="web_search", text="x", provider_executed=True)
    messages = (
        PromptMessage(role="user", parts=(PromptText(text="hi"),)),
        PromptMessage(role="assistant", parts=(call, result)),
        PromptMessage(role="user", parts=(PromptText(text="more"),)),
    )
    asked = request()
    sent = wire_messages(type(asked)(model=MODEL, system=(), messages=messages))
    said = {"type": "text", "text": "[web_search was run with {}. Its result:]\nx"}
    assert sent[1] == {"role": "assistant", "content": [said]}


@pytest.mark.parametrize(("status", "kept"), [("completed", True), (None, True), ("incomplete", False)])
async def test_reasoning_that_has_not_ended_does_not_come_back(status: str | None, kept: bool) -> None:
    said: dict[str, Json] = {} if status is None else {"status": status}
    item: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e", **said}
    parts = await responses_parts(
        {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "A"},
        done(0, item),
        {"type": "response.completed", "response": response("completed")},
    )
    (thought,) = assembled(parts).parts(MessageId("1.0"))
    assert isinstance(thought, ReasoningPart)
    assert (thought.metadata is not None) == kept


_CALL: Json = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"a": 1}'}
_HALF: list[Json] = [
    {"type": "response.output_item.added", "output_index": 0, "item": {**_CALL, "arguments": ""}},  # type: ignore[dict-item]
    {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": '{"a"'},
]
_REFUSAL: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "refusal", "refusal": "Not that."}],
}
_HALF_REFUSAL: Json = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "Not"}


@pytest.mark.parametrize(
    ("events", "item", "calls", "reason", "explanation"),
    [
        (_HALF, _CALL, [("c1", '{"a": 1}')], "tool_calls", None),
        ([], _CALL, [("c1", '{"a": 1}')], "tool_calls", None),
        ([_HALF_REFUSAL], _REFUSAL, [], "refusal", "Not that."),
        ([], _REFUSAL, [], "refusal", "Not that."),
        ([done(0, _REFUSAL)], _REFUSAL, [], "refusal", "Not that."),
        ([*_HALF, done(0, _CALL)], _CALL, [("c1", '{"a": 1}')], "tool_calls", None),
    ],
    ids=["half a call", "a call", "half a refusal", "a refusal", "a late refusal", "an ended call, once"],
)
async def test_what_the_stream_did_not_end_is_taken_from_the_whole_answer(
    events: list[Json], item: Json, calls: list[tuple[str, str]], reason: str, explanation: str | None
) -> None:
    whole: Json = {"type": "response.completed", "response": response("completed", output=[item])}
    parts = await responses_parts(*events, whole)
    assert [(part.id, part.arguments) for part in parts if isinstance(part, CallEnd)] == calls
    assert isinstance(parts[-1], Finish)
    assert (parts[-1].reason, parts[-1].explanation) == (reason, explanation)
    assert not assembled(parts).awaits_call


async def test_a_refusal_that_comes_late_alone() -> None:
    parts = await responses_parts(done(0, _REFUSAL), {"type": "response.completed", "response": response("completed")})
    assert isinstance(parts[-1], Finish)
    assert (parts[-1].reason, parts[-1].explanation) == ("refusal", "Not that.")


@pytest.mark.parametrize("status", ["completed", "incomplete"])
async def test_a_call_that_was_announced_and_never_ended(status: str) -> None:
    parts = await responses_parts(*_HALF, {"type": f"response.{status}", "response": response(status)})
    assert assembled(parts).awaits_call


@pytest.mark.parametrize("stop", ["tool_use", "end_turn", "something_new"])
async def test_messages_whose_call_never_ended(stop: str) -> None:
    start = block(0, {"type": "tool_use", "id": "c1", "name": "look", "input": {}})[:1]
    parts = await anthropic_parts(START, *start, ended(stop), STOP)
    assert assembled(parts).awaits_call
