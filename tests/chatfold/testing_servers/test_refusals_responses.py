"""What the Responses server refuses, and with which words; and conversations that it must not refuse."""

from typing import Any

import openai
import pytest

from chatfold.testing.servers import Answer, OpenAIResponsesServer, Part, Reasoning, Text, ToolCall
from tests.chatfold.testing_servers.kits import RESPONSES

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hello."}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "integer"}}}


def call(call_id: str, **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "add", "arguments": "{}", **more}


def output(call_id: str, value: Any = "3") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def message(role: str, *parts: Json, **more: Any) -> Json:
    return {"type": "message", "role": role, "content": list(parts), **more}


def thought(**more: Any) -> Json:
    return {"type": "reasoning", "id": "rs_1", "summary": [], **more}


def tool(**changes: Any) -> Json:
    return {"tools": [{"type": "function", "name": "add", "parameters": SCHEMA, "strict": False, **changes}]}


IN: Json = {"type": "input_text", "text": "a"}
OUT: Json = {"type": "output_text", "text": "a", "annotations": []}

BODIES: list[tuple[str, Json, str, str | None]] = [
    ("no input", {"input": ...}, "One of 'input' or 'previous_response_id'", None),
    ("input a number", {"input": 5}, "Invalid type for 'input'", "input"),
    ("empty input", {"input": ""}, "Invalid 'input': empty string", "input"),
    ("empty list", {"input": []}, "Invalid 'input': empty array", "input"),
    ("no model", {"model": ...}, "Missing required parameter: 'model'.", "model"),
    ("unknown field", {"messages": []}, "Unknown parameter: 'messages'.", "messages"),
    ("small limit", {"max_output_tokens": 1}, "Expected a value >= 16, but got 1", "max_output_tokens"),
    ("include", {"include": ["x"]}, "Invalid value: 'x'. Supported values are: 'code_", "include[0]"),
    ("effort", {"reasoning": {"effort": "huge"}}, "Invalid value: 'huge'.", "reasoning.effort"),
    ("chat's tool", {"tools": [{"type": "function", "function": {}}]}, "'tools[0].name'", "tools[0].name"),
    ("type of a tool", tool(type="x"), "Invalid value: 'x'", "tools[0].type"),
    ("name", tool(name="a b"), "does not match pattern", "tools[0].name"),
    ("same name twice", {"tools": tool()["tools"] * 2}, "Duplicate tool name 'add'", "tools[1].name"),
    ("required is null", tool(parameters={**SCHEMA, "required": None}), "None is not of type 'array'", None),
    ("union on top", tool(parameters={**SCHEMA, "anyOf": []}), "'anyOf'/'allOf'/'enum'/'not' at the top level", None),
    (
        "array without items",
        tool(parameters={"type": "object", "properties": {"a": {"type": "array"}}}),
        "In context=('properties', 'a'), array schema missing items.",
        None,
    ),
    ("not strict", tool(strict=True), "'additionalProperties' is required", "tools[0].parameters"),
    ("choice without tools", {"tool_choice": "required"}, "must be specified with 'tools'", "tool_choice"),
    ("other choice", {**tool(), "tool_choice": {"type": "function", "name": "x"}}, "Tool choice 'x' not found", None),
    ("previous", {"previous_response_id": "resp_9"}, "Previous response with id 'resp_9' not found.", None),
]
ITEMS: list[tuple[str, list[Json], str, str | None]] = [
    ("type", [{"type": "x"}], "Invalid value: 'x'. Supported values are: 'message'", "input[0]"),
    ("role", [{"role": "tool", "content": "x"}], "Invalid value: 'tool'", "input[0].role"),
    ("empty text", [{"role": "user", "content": ""}], "empty string", "input[0].content"),
    ("no parts", [message("user")], "empty array", "input[0].content"),
    ("part", [message("user", {"type": "text", "text": "x"})], "Invalid value: 'text'", "input[0].content[0]"),
    ("output of a user", [message("user", OUT)], "Supported values are: 'input_text'", "input[0].content[0].type"),
    ("input of the model", [USER, message("assistant", IN)], "'output_text' and 'refusal'", None),
    ("image of the system", [message("system", {"type": "input_image"})], "Supported values are: 'input_text'.", None),
    ("extra", [{**USER, "name": "x"}], "Unknown parameter: 'input[0].name'.", "input[0].name"),
    ("no output", [USER, call("a"), call("b"), output("b")], "No tool output found for function call a.", "input"),
    ("no call", [USER, output("a")], "No tool call found for function call output with call_id a.", "input"),
    ("output first", [USER, output("a"), call("a")], "No tool call found", "input"),
    ("output twice", [USER, call("a"), output("a"), output("a")], "Duplicate function call output", "input"),
    ("call twice", [USER, call("a"), output("a"), call("a"), output("a")], "Duplicate function call", "input"),
    ("long id", [USER, call("a" * 65), output("a" * 65)], "maximum length 64", "input[1].call_id"),
    ("arguments", [USER, call("a", arguments={}), output("a")], "expected a string, but got an object", None),
    ("output null", [USER, call("a"), output("a", None)], "Invalid type for 'input[2].output'", None),
    ("id twice", [message("user", IN, id="msg_1")] * 2, "Duplicate item found with id msg_1.", "input"),
    ("prefix", [USER, call("a", id="call_1"), output("a")], "Expected an ID that begins with 'fc'", "input[1].id"),
    (
        "forged reasoning",
        [USER, thought(encrypted_content="gAAAAforged=="), message("assistant", OUT)],
        "The encrypted content gAAA...ed== could not be verified.",
        None,
    ),
]
CASES = [*BODIES, *((name, {"input": items}, words, param) for name, items, words, param in ITEMS)]


@pytest.mark.parametrize(("changes", "words", "param"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
async def test_refused(changes: Json, words: str, param: str | None) -> None:
    await RESPONSES.refused(changes, words, param)


ACCEPTED: list[tuple[str, list[Json]]] = [
    ("calls and outputs", [USER, call("a"), call("b", id="fc_1"), output("b"), output("a", "")]),
    ("outputs in parts", [USER, call("a"), output("a", [IN]), USER]),
    ("assistant last", [USER, message("assistant", OUT, id="msg_1", status="completed")]),
    ("an easy assistant", [USER, {"role": "assistant", "content": "x"}, USER]),
    ("instructions anywhere", [message("developer", IN), USER, {"role": "system", "content": "y"}]),
]


@pytest.mark.parametrize("items", [case[1] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
async def test_accepted(items: list[Json]) -> None:
    async with OpenAIResponsesServer([Answer("Fine.")]) as server:
        await RESPONSES.post(server, {**RESPONSES.body, "input": items, **tool()})
    assert server.refused == []


PARTS: list[Part] = [Reasoning("Hm."), ToolCall("add", {"a": 1})]
STATELESS: Json = {"store": False, "include": ["reasoning.encrypted_content"]}


async def _first(server: OpenAIResponsesServer, **options: Any) -> tuple[str, list[Json]]:
    async with RESPONSES.client(server.base_url) as client:
        response = await client.responses.create(**RESPONSES.body, **options)
    return response.id, [item.model_dump(exclude_none=True) for item in response.output]


async def _second(server: OpenAIResponsesServer, items: list[Json], **options: Any) -> str:
    """Ask on; the message of the refusal, or nothing."""
    try:
        await RESPONSES.post(server, {**RESPONSES.body, "input": items, **options})
    except openai.APIStatusError as error:
        return f"{error.status_code} {error.message}"
    return ""


async def test_reasoning_comes_back_encrypted() -> None:
    async with OpenAIResponsesServer([Answer(PARTS), *[Answer("x")] * 3, Answer(PARTS)]) as server:
        _, (reasoning, function_call) = await _first(server, **STATELESS)
        done = output(function_call["call_id"])
        assert await _second(server, [USER, reasoning, function_call, done], **STATELESS) == ""
        bare = {key: value for key, value in function_call.items() if key != "id"}
        assert await _second(server, [USER, reasoning, bare, done], **STATELESS) == ""
        assert await _second(server, [USER, bare, done], **STATELESS) == ""
        assert "without its required following item" in await _second(server, [USER, reasoning], **STATELESS)
        follows = await _second(server, [USER, reasoning, USER, function_call, done], **STATELESS)
        assert "without its required following item" in follows
        alone = await _second(server, [USER, function_call, done], **STATELESS)
        assert f"without its required 'reasoning' item: '{reasoning['id']}'" in alone
        no_content = {key: value for key, value in reasoning.items() if key != "encrypted_content"}
        gone = await _second(server, [USER, no_content, function_call, done], **STATELESS)
        assert gone.startswith("404 ")
        assert "Items are not persisted when `store` is set to false" in gone
        other = {**reasoning, "id": "rs_other"}
        mismatch = await _second(server, [USER, other, bare, done], **STATELESS)
        assert "did not match the target item id" in mismatch
        assert [refusal.status for refusal in server.refused] == [400, 400, 400, 404, 400]


async def test_a_stored_response_is_continued() -> None:
    script = [Answer(PARTS), *[Answer([Text("x")])] * 3]
    async with OpenAIResponsesServer(script) as server:
        response_id, (reasoning, function_call) = await _first(server)
        assert "encrypted_content" not in reasoning
        done = output(function_call["call_id"])
        assert await _second(server, [done], previous_response_id=response_id) == ""
        assert server.requests[1].user_texts == ("Hello.",)
        assert server.requests[1].tool_results == ((function_call["call_id"], "3"),)
        references = [{"type": "item_reference", "id": reasoning["id"]}, {"id": function_call["id"]}]
        assert await _second(server, [USER, *references, done]) == ""
        assert await _second(server, [USER, reasoning, function_call, done]) == ""
        unanswered = await _second(server, [USER], previous_response_id=response_id)
        assert "No tool output found for function call" in unanswered


async def test_nothing_is_kept_of_what_was_not_to_be_stored() -> None:
    async with OpenAIResponsesServer([Answer("x")]) as server:
        response_id, (item,) = await _first(server, store=False)
        assert "Previous response with id" in await _second(server, [USER], previous_response_id=response_id)
        assert "404 " in await _second(server, [{"id": item["id"]}])
