"""What Anthropic's server refuses, and with which words; and conversations that it must not refuse."""

from typing import Any

import anthropic
import pytest

from chatfold.testing.servers import Answer, AnthropicServer, Part, Reasoning, Text, ToolCall
from tests.chatfold.testing_servers.kits import ANTHROPIC

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "Hello."}
SCHEMA: Json = {"type": "object", "properties": {}}
TOOL: Json = {"name": "add", "input_schema": SCHEMA}


def call(*ids: str) -> Json:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "add", "input": {}} for i in ids]}


def result(*ids: str, **more: Any) -> Json:
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": "3", **more} for i in ids]
    return {"role": "user", "content": blocks}


def said(*blocks: Json, role: str = "assistant") -> Json:
    return {"role": role, "content": list(blocks)}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


_THOUGHT: Json = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
BODIES: list[tuple[str, Json, str]] = [
    ("no model", {"model": None}, "model: Input should be a valid string"),
    ("no max_tokens", {"max_tokens": ...}, "max_tokens: Field required"),
    ("max_tokens a string", {"max_tokens": "9"}, "max_tokens: Input should be a valid integer"),
    ("unknown field", {"max_output_tokens": 3}, "max_output_tokens: Extra inputs are not permitted"),
    ("temperature, gone since 2026-10-21", {"temperature": 1.0}, "temperature: Extra inputs are not permitted"),
    ("blank system block", {"system": [text("")]}, "system: text content blocks must be non-empty"),
    ("tool without schema", {"tools": [{"name": "add"}]}, "tools.0.custom.input_schema: Field required"),
    (
        "schema of another type",
        {"tools": [{"name": "add", "input_schema": {"type": "array"}}]},
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    (
        "required is null",
        {"tools": [{"name": "add", "input_schema": {**SCHEMA, "required": None}}]},
        "tools.0.custom.input_schema.required: Input should be a valid list",
    ),
    ("name of a tool", {"tools": [{**TOOL, "name": "a b"}]}, "tools.0.custom.name: String should match pattern"),
    ("long name", {"tools": [{**TOOL, "name": "a" * 129}]}, "tools.0.custom.name: String should match pattern"),
    ("same name twice", {"tools": [TOOL, TOOL]}, "Tool names must be unique"),
    ("choice without tools", {"tool_choice": {"type": "any"}}, "may only be specified while providing tools"),
    ("choice of another", {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "x"}}, "Tool 'x' not found"),
    (
        "budget over max_tokens",
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    (
        "union on top of a schema",
        {"tools": [{"name": "add", "input_schema": {**SCHEMA, "anyOf": []}}]},
        "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    (
        "no thinking at the start of the turn",
        {
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "max_tokens": 2000,
            "messages": [USER, call("a"), result("a")],
        },
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    ),
    ("small budget", {"thinking": {"type": "enabled", "budget_tokens": 9}}, "greater than or equal to 1024"),
    ("cache", {"system": [text("a", cache_control={"type": "ephemeral"})] * 5}, "A maximum of 4 blocks"),
    (
        "cache over tools, system and messages",
        {
            "tools": [{**TOOL, "cache_control": {"type": "ephemeral"}}],
            "system": [text("a", cache_control={"type": "ephemeral"})] * 2,
            "messages": [said(*[text("a", cache_control={"type": "ephemeral"})] * 2, role="user")],
        },
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    (
        "an hour behind five minutes",
        {
            "tools": [{**TOOL, "cache_control": {"type": "ephemeral"}}],
            "system": [text("a", cache_control={"type": "ephemeral", "ttl": "1h"})],
        },
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
    (
        "cache on thinking",
        {"messages": [USER, said({**_THOUGHT, "cache_control": {"type": "ephemeral"}}), USER]},
        "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
    ),
]
MESSAGES: list[tuple[str, list[Json], str]] = [
    ("none", [], "at least one message is required"),
    ("role", [{"role": "tool", "content": "x"}], "messages.0.role: Input should be 'user', 'assistant' or 'system'"),
    ("content null", [{"role": "user", "content": None}], "messages.0.content: Input should be a valid"),
    ("assistant first", [said(text("Hi.")), USER], 'first message must use the "user" role'),
    ("assistant last", [USER, said(text("Hi."))], "does not support assistant message prefill"),
    ("empty content", [said(role="user")], "messages.0: all messages must have non-empty content"),
    ("empty text", [said(text(""), role="user")], "text content blocks must be non-empty"),
    ("empty string", [{"role": "user", "content": ""}], "text content blocks must be non-empty"),
    ("blank text", [said(text(" \n"), role="user")], "must contain non-whitespace text"),
    ("citations of a user", [said(text("a", citations=[{}]), role="user")], "`citations` are not permitted"),
    ("unknown block", [said({"type": "video"}, role="user")], "messages.0.content.0: Input tag 'video'"),
    ("unknown field of a block", [said(text("a", id=1), role="user")], "messages.0.content.0.text.id: Extra inputs"),
    ("document of the assistant", [USER, said({"type": "document", "source": {}}), USER], "only be in `user` messages"),
    ("call of a user", [{**call("a"), "role": "user"}], "only be in `assistant` messages"),
    ("call id", [USER, call("a.b"), result("a.b")], "tool_use.id: String should match pattern"),
    ("unanswered call", [USER, call("a", "b"), result("a")], "messages.1: `tool_use` ids were found without `tool_re"),
    ("unanswered at the end", [USER, call("a"), USER], "without `tool_result` blocks immediately after: a."),
    ("text before the result", [USER, call("a"), said(text("x"), *result("a")["content"], role="user")], "after: a."),
    ("orphan result", [USER, said(text("Hi.")), result("a")], "messages.2.content.0: unexpected `tool_use_id` found"),
    ("result first", [result("a")], "unexpected `tool_use_id`"),
    ("result twice", [USER, call("a"), result("a", "a")], "each tool_use must have a single result"),
    ("result again later", [USER, call("a"), result("a"), said(text("x")), result("a")], "unexpected `tool_use_id`"),
    ("call id twice", [USER, call("a"), result("a"), call("a"), result("a")], "`tool_use` ids must be unique"),
    ("input no object", [USER, said({**call("a")["content"][0], "input": "x"}), result("a")], "valid dictionary"),
    ("no signature", [USER, said({"type": "thinking", "thinking": "x"}, text("a")), USER], "signature: Field required"),
    (
        "forged signature",
        [USER, said({"type": "thinking", "thinking": "x", "signature": "y"}, text("a")), USER],
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "forged redacted thinking",
        [USER, said({"type": "redacted_thinking", "data": "y"}, text("a")), USER],
        "Invalid `data` in `redacted_thinking` block",
    ),
    ("system first", [{"role": "system", "content": "x"}, USER], 'must use the "user" role'),
    ("system after the assistant", [USER, said(text("a")), said(text("b"), role="system"), USER], "follow a `user`"),
    ("system amid", [USER, said(text("b"), role="system"), USER], "followed by an `assistant` message"),
]
CASES = [*BODIES, *((name, {"messages": messages}, words) for name, messages, words in MESSAGES)]


@pytest.mark.parametrize(("changes", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
async def test_refused(changes: Json, words: str) -> None:
    body = {name: value for name, value in {**ANTHROPIC.body, **changes}.items() if value is not ...}
    async with AnthropicServer([]) as server:
        with pytest.raises(anthropic.BadRequestError) as caught:
            await ANTHROPIC.post(server, body)
    error = caught.value.body
    assert isinstance(error, dict)
    assert error["type"] == "error"
    assert error["error"]["type"] == "invalid_request_error"
    assert words in error["error"]["message"]
    assert [refusal.message for refusal in server.refused] == [error["error"]["message"]]
    assert server.refused[0].status == 400
    assert server.refused[0].request is server.requests[0]


ACCEPTED: list[tuple[str, Json]] = [
    ("two users in a row", {"messages": [USER, USER]}),
    ("two calls, results over two messages", {"messages": [USER, call("a", "b"), result("a"), result("b")]}),
    ("text after the results", {"messages": [USER, call("a"), said(*result("a")["content"], text("x"), role="user")]}),
    ("an error result without content", {"messages": [USER, call("a"), result("a", is_error=True, content=None)]}),
    ("a system message after a user", {"messages": [USER, said(text("b"), role="system")]}),
    (
        "all options",
        {
            "tools": [TOOL],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "system": [text("Be brief.", cache_control={"type": "ephemeral"})],
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high"},
            "metadata": {"user_id": "u"},
            "stop_sequences": ["x"],
        },
    ),
]


@pytest.mark.parametrize("changes", [case[1] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
async def test_accepted(changes: Json) -> None:
    async with AnthropicServer([Answer("Fine.")]) as server:
        await ANTHROPIC.post(server, {**ANTHROPIC.body, **changes})
    assert server.refused == []


async def test_thinking_must_come_back_as_it_was_issued() -> None:
    parts: list[Part] = [Reasoning("Hm."), Reasoning(redacted=True), Text("I add."), ToolCall("add", {"a": 1})]
    script = [Answer(parts), *[Answer("Three.")] * 2]
    async with AnthropicServer(script) as server, ANTHROPIC.client(server.base_url) as client:
        first = await client.messages.create(**ANTHROPIC.body)
        content = [block.model_dump(exclude={"citations", "caller", "toolset_name"}) for block in first.content]
        messages = [USER, said(*content), result(first.content[3].id)]
        await client.messages.create(**{**ANTHROPIC.body, "messages": messages})
        assert server.requests[1].tool_results == ((first.content[3].id, "3"),)
        content[0]["thinking"] = "Hm"
        with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
            await client.messages.create(**{**ANTHROPIC.body, "messages": messages})
    async with AnthropicServer([Answer("Fine.")], issued=server.issued) as other:
        content[0]["thinking"] = "Hm."
        await ANTHROPIC.post(other, {**ANTHROPIC.body, "messages": messages})


async def test_older_models_and_versions() -> None:
    async with AnthropicServer([Answer("Hi.")] * 2, allow_prefill=True) as server:
        await ANTHROPIC.post(server, {**ANTHROPIC.body, "messages": [USER, said(text("I"))]})
        async with ANTHROPIC.client(server.base_url) as client:
            old = client.with_options(default_headers={"anthropic-version": "2023-06-01"})
            await old.post("/v1/messages", cast_to=object, body={**ANTHROPIC.body, "temperature": 0.5})
            new = client.with_options(default_headers={"anthropic-version": "2030-01-01"})
            with pytest.raises(anthropic.BadRequestError, match="is not a valid version"):
                await new.messages.create(**ANTHROPIC.body)


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ({"authorization": anthropic.Omit(), "x-api-key": anthropic.Omit()}, anthropic.AuthenticationError),
        ({"anthropic-version": anthropic.Omit()}, anthropic.BadRequestError),
    ],
    ids=["key", "version"],
)
async def test_headers(headers: Json, error: type[anthropic.APIStatusError]) -> None:
    async with AnthropicServer([]) as server, ANTHROPIC.client(server.base_url) as client:
        with pytest.raises(error):
            await client.post("/v1/messages", cast_to=object, body=ANTHROPIC.body, options={"headers": headers})
        assert len(server.refused) == 1
