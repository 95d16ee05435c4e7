"""What the Chat Completions server refuses, and with which words; and conversations that it must not refuse."""

from typing import Any

import openai
import pytest

from chatfold.testing.servers import Answer, OpenAIChatServer
from tests.chatfold.testing_servers.kits import CHAT

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hello."}
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "integer"}}}


def call(*ids: str, **more: Any) -> Json:
    calls = [{"id": i, "type": "function", "function": {"name": "add", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(call_id: str, content: Any = "3") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def tool(**changes: Any) -> Json:
    function = {"name": "add", "parameters": SCHEMA, **changes}
    return {"tools": [{"type": "function", "function": function}]}


BODIES: list[tuple[str, Json, str, str | None]] = [
    ("no messages", {"messages": ...}, "Missing required parameter: 'messages'.", "messages"),
    ("empty messages", {"messages": []}, "Invalid 'messages': empty array.", "messages"),
    ("model a number", {"model": 5}, "Invalid type for 'model': expected a string, but got an integer", "model"),
    ("unknown field", {"max_output_tokens": 5}, "Unknown parameter: 'max_output_tokens'.", "max_output_tokens"),
    ("stream_options", {"stream_options": {"include_usage": True}}, "only allowed when 'stream'", "stream_options"),
    ("two limits", {"max_tokens": 5, "max_completion_tokens": 5}, "at the same time", "max_tokens"),
    ("limit", {"max_completion_tokens": 0}, "integer below minimum value. Expected a value >= 1", None),
    ("choice without tools", {"tool_choice": "auto"}, "only allowed when 'tools' are specified", "tool_choice"),
    ("no tools", {"tools": []}, "Invalid 'tools': empty array.", "tools"),
    ("type of a tool", {"tools": [{"type": "x", "function": {"name": "a"}}]}, "Invalid value: 'x'", "tools[0].type"),
    ("name", tool(name="a b"), "does not match pattern", "tools[0].function.name"),
    ("long name", tool(name="a" * 65), "maximum length 64, but got a string with length 65", "tools[0].function.name"),
    ("required is null", tool(parameters={**SCHEMA, "required": None}), "None is not of type 'array'", None),
    ("no object", tool(parameters={}), "schema must be a JSON Schema of 'type: \"object\"'", None),
    ("no properties", tool(parameters={"type": "object"}), "object schema missing properties", None),
    ("union on top", tool(parameters={**SCHEMA, "anyOf": []}), "'anyOf'/'allOf'/'enum'/'not' at the top level", None),
    (
        "array without items",
        tool(parameters={"type": "object", "properties": {"a": {"type": "array"}}}),
        "In context=('properties', 'a'), array schema missing items.",
        None,
    ),
    ("not strict", tool(strict=True), "'additionalProperties' is required", "tools[0].function.parameters"),
    (
        "not all required",
        tool(strict=True, parameters={**SCHEMA, "additionalProperties": False}),
        "including every key in properties",
        None,
    ),
]
MESSAGES: list[tuple[str, list[Json], str, str | None]] = [
    ("role", [{"role": "x", "content": "a"}], "Invalid value: 'x'. Supported values are: 'system'", None),
    ("content null", [{"role": "user", "content": None}], "Invalid type for 'messages[0].content'", None),
    ("empty text", [{"role": "user", "content": ""}], "empty string", "messages[0].content"),
    ("empty parts", [{"role": "user", "content": []}], "empty array", "messages[0].content"),
    ("part", [{"role": "user", "content": [{"type": "x"}]}], "Invalid value: 'x'", "messages[0].content[0]"),
    ("extra", [{**USER, "id": 1}], "Unknown parameter: 'messages[0].id'.", "messages[0].id"),
    ("null without calls", [USER, {"role": "assistant", "content": None}, USER], "expected a string, got null", None),
    ("empty assistant", [USER, {"role": "assistant", "content": ""}, USER], "empty string", "messages[1].content"),
    ("no calls in the list", [USER, call()], "Invalid 'messages[1].tool_calls': empty array", None),
    ("unanswered", [USER, call("a", "b"), result("a")], "did not have response messages: b", "messages.[3].role"),
    ("answered late", [USER, call("a"), USER, result("a")], "did not have response messages: a", "messages.[2].role"),
    ("orphan", [USER, result("a")], "must be a response to a preceeding message", "messages.[1].role"),
    ("other id", [USER, call("a"), result("b")], "'tool_call_id' of 'b' not found", None),
    ("answered twice", [USER, call("a"), result("a"), result("a")], "'tool_call_id' of 'a' not found", None),
    ("ids twice", [USER, call("a", "a"), result("a")], "Duplicate value for 'tool_call_id'", None),
    ("long id", [USER, call("a" * 41), result("a" * 41)], "maximum length 40", "messages[1].tool_calls[0].id"),
    ("result null", [USER, call("a"), result("a", None)], "Invalid type for 'messages[2].content'", None),
]
CASES = [*BODIES, *((name, {"messages": messages}, words, param) for name, messages, words, param in MESSAGES)]


@pytest.mark.parametrize(("changes", "words", "param"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
async def test_refused(changes: Json, words: str, param: str | None) -> None:
    await CHAT.refused(changes, words, param)


ACCEPTED: list[tuple[str, list[Json]]] = [
    ("calls and results", [USER, call("a", "b"), result("b"), result("a", ""), USER]),
    ("text beside a call", [USER, call("a", content=""), result("a")]),
    ("reasoning comes back", [USER, {"role": "assistant", "content": "x", "reasoning_content": "y"}, USER]),
    ("ids that repeat in another turn", [USER, call("a"), result("a"), call("a"), result("a")]),
    ("system anywhere", [{"role": "developer", "content": "x"}, USER, {"role": "system", "content": "y"}]),
    ("assistant last", [USER, {"role": "assistant", "content": "x"}]),
]


@pytest.mark.parametrize("messages", [case[1] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
async def test_accepted(messages: list[Json]) -> None:
    strict = {**SCHEMA, "additionalProperties": False, "required": ["a"]}
    async with OpenAIChatServer([Answer("Fine.")]) as server:
        await CHAT.post(server, {**CHAT.body, "messages": messages, **tool(strict=True, parameters=strict)})
    assert server.refused == []


async def test_a_key_is_needed() -> None:
    async with OpenAIChatServer([]) as server, CHAT.client(server.base_url) as client:
        with pytest.raises(openai.AuthenticationError, match="You didn't provide an API key"):
            await client.post(
                CHAT.endpoint, cast_to=object, body=CHAT.body, options={"headers": {"authorization": "Basic x"}}
            )
        assert server.refused[0].status == 401
