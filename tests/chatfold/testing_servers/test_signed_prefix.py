"""Signatures that cover what stands before a thinking block: Anthropic's server takes it back only there."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest

from chatfold.testing.servers import Answer, AnthropicServer, IssuedThinking, Reasoning, Text, ToolCall
from chatfold.testing.servers.anthropic_prefix import Coverage
from tests.chatfold.testing_servers.kits import ANTHROPIC
from tests.chatfold.testing_servers.talks import Json, Talk

TOOL: Json = {"name": "add", "input_schema": {"type": "object", "properties": {}}}
REFUSED = "Invalid `signature` in `thinking` block"
ANSWERS = [
    Answer([Reasoning("Hm."), Text("I add."), ToolCall("add", {"a": 1})]),
    Answer([Reasoning(redacted=True), Reasoning("So."), Text("It is two.")]),
]


def _talk(client: anthropic.AsyncAnthropic) -> Talk:
    return Talk(client, "Add.", system="Be brief.", tools=[TOOL])


@asynccontextmanager
async def talk(covers: Coverage) -> AsyncIterator[tuple[AnthropicServer, Talk]]:
    """A conversation of two answers, to which the user has said something more."""
    issued = IssuedThinking(covers=covers)
    script = [*ANSWERS, Answer([Reasoning("Well."), Text("Bye.")])]
    async with AnthropicServer(script, issued=issued) as server, ANTHROPIC.client(server.base_url) as client:
        talk = _talk(client)
        await talk.ask()
        call = talk.messages[-1]["content"][-1]["id"]
        talk.messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": "2"}]}
        )
        await talk.ask()
        talk.messages.append({"role": "user", "content": "Thanks."})
        yield server, talk


def _other_text(body: Json) -> None:
    body["messages"][0]["content"] = "Add, please."


def _other_result(body: Json) -> None:
    body["messages"][2]["content"][0]["content"] = "3"


def _other_arguments(body: Json) -> None:
    body["messages"][1]["content"][-1]["input"] = {"a": 2}


def _without_a_text(body: Json) -> None:
    del body["messages"][1]["content"][1]


def _something_before(body: Json) -> None:
    body["messages"].insert(0, {"role": "user", "content": "Hello."})


def _moved(body: Json) -> None:
    body["messages"][3]["content"].insert(0, body["messages"][1]["content"].pop(0))


@pytest.mark.parametrize(
    "change", [_other_text, _other_result, _other_arguments, _without_a_text, _something_before, _moved]
)
@pytest.mark.parametrize("covers", ["text", "messages", "request"])
async def test_what_stands_before_may_not_change(covers: Coverage, change: Callable[[Json], None]) -> None:
    async with talk(covers) as (server, conversation):
        change(conversation.body)
        if covers == "text":
            await conversation.ask()
            assert server.refused == []
            return
        with pytest.raises(anthropic.BadRequestError) as caught:
            await conversation.ask()
        assert REFUSED in caught.value.message


def _marked(body: Json) -> None:
    body["messages"][0]["content"] = [{"type": "text", "text": "Add.", "cache_control": {"type": "ephemeral"}}]


def _split(body: Json) -> None:
    blocks = body["messages"][3]["content"]
    body["messages"][3:4] = [{"role": "assistant", "content": [each]} for each in blocks[2:]]
    body["messages"][3]["content"] = [*blocks[:2], *body["messages"][3]["content"]]


def _without_earlier_thinking(body: Json) -> None:
    del body["messages"][1]["content"][0]


def _more_behind(body: Json) -> None:
    body["messages"].append({"role": "user", "content": "And more."})


@pytest.mark.parametrize("change", [_marked, _split, _without_earlier_thinking, _more_behind])
@pytest.mark.parametrize("covers", ["text", "messages", "request"])
async def test_what_does_not_count_may_change(covers: Coverage, change: Callable[[Json], None]) -> None:
    async with talk(covers) as (server, conversation):
        change(conversation.body)
        await conversation.ask()
        assert server.refused == []


@pytest.mark.parametrize(("covers", "refused"), [("messages", False), ("request", True)])
@pytest.mark.parametrize("changes", [{"system": "Be long."}, {"tools": [{**TOOL, "description": "Adds."}]}])
async def test_system_and_tools_count_where_the_whole_request_is_signed(
    covers: Coverage, refused: bool, changes: Json
) -> None:
    async with talk(covers) as (server, conversation):
        conversation.body |= changes
        if refused:
            with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
                await conversation.ask()
        else:
            await conversation.ask()
        assert len(server.refused) == refused


async def test_the_server_tells_what_thinking_came_back() -> None:
    async with talk("request") as (server, conversation):
        await conversation.ask()
    seen = server.requests[2].seen
    assert seen.roles == ("user", "assistant", "user", "assistant", "user")
    assert len(seen.reasoning) == 3
    assert set(seen.reasoning) <= {*server.issued.signatures, *server.issued.redacted}
    assert len(seen.calls) == 1


async def test_a_call_with_broken_arguments_may_come_back_otherwise() -> None:
    issued = IssuedThinking(covers="messages")
    broken = Answer([Reasoning("Hm."), ToolCall("add", '{"a": ', id="toolu_1")])
    script = [broken, Answer([Reasoning("Again."), Text("Two.")]), Answer("Bye.")]
    async with AnthropicServer(script, issued=issued) as server, ANTHROPIC.client(server.base_url) as client:
        conversation = _talk(client)
        async with client.messages.stream(**conversation.body) as stream:
            (signature,) = [event.delta.signature async for event in stream if _signed(event)]
        thought = {"type": "thinking", "thinking": "Hm.", "signature": signature}
        call = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "broken"}
        conversation.messages.append({"role": "assistant", "content": [thought, call]})
        conversation.messages.append({"role": "user", "content": [result]})
        await conversation.ask()
        conversation.messages.append({"role": "user", "content": "Thanks."})
        await conversation.ask()
        assert server.refused == []


def _signed(event: Any) -> bool:
    return bool(event.type == "content_block_delta" and event.delta.type == "signature_delta")
