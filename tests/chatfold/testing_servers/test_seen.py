"""What the servers tell of the requests that they saw, and requests that are too large."""

from typing import Any

import anthropic
import pytest

from chatfold.testing.servers import Answer, AnthropicServer, OpenAIChatServer
from tests.chatfold.testing_servers.kits import ANTHROPIC, CHAT

Json = dict[str, Any]
EPHEMERAL: Json = {"cache_control": {"type": "ephemeral"}}


async def test_cache_breakpoints_are_told_by_their_places() -> None:
    hour: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    tool: Json = {"name": "add", "input_schema": {"type": "object"}, **hour}
    said: Json = {"type": "text", "text": "Hello."}
    body = {
        "tools": [tool],
        "system": [{"type": "text", "text": "Be brief.", **hour}],
        "messages": [{"role": "user", "content": [said, {**said, **EPHEMERAL}]}],
        **EPHEMERAL,
    }
    async with AnthropicServer([Answer("Hi.")]) as server, ANTHROPIC.client(server.base_url) as client:
        await client.messages.create(**{**ANTHROPIC.body, **body})
        assert server.requests[0].seen.breakpoints == ("request", "tools.0", "system.0", "messages.0.content.1")


async def test_roles_calls_and_reasoning_of_chat_completions() -> None:
    calls = [{"id": each, "type": "function", "function": {"name": "add", "arguments": "{}"}} for each in ("a", "b")]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add."},
        {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]
    async with OpenAIChatServer([Answer("Done.")]) as server:
        await CHAT.post(server, {"model": "gpt-test", "messages": messages})
        seen = server.requests[0].seen
    assert seen.roles == ("system", "user", "assistant", "tool", "tool")
    assert (seen.calls, seen.reasoning) == (("a", "b"), ("Hm.",))
    assert server.requests[0].tool_results == (("b", "2"), ("a", "1"))


async def test_a_refused_request_tells_nothing() -> None:
    async with AnthropicServer([]) as server:
        with pytest.raises(anthropic.BadRequestError):
            await ANTHROPIC.post(server, {**ANTHROPIC.body, "messages": [{"role": "user", "content": ""}]})
        assert server.requests[0].seen.roles == ()


async def test_a_request_that_is_too_large() -> None:
    async with AnthropicServer([Answer("Hi.")], body_limit=2000) as server:
        await ANTHROPIC.ask(server, text="a" * 1000)
        with pytest.raises(anthropic.APIStatusError, match="Request exceeds the maximum size") as caught:
            await ANTHROPIC.ask(server, text="a" * 2000)
    assert caught.value.status_code == 413
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "request_too_large"
