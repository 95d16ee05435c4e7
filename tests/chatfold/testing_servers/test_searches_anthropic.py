"""Searches that Anthropic's service runs: their blocks, answers that pause, and what of them may come back."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anthropic
import pytest

from chatfold.testing.servers import Answer, AnthropicServer, Found, Reasoning, Reply, Search, Text, ToolCall
from tests.chatfold.testing_servers.kits import ANTHROPIC
from tests.chatfold.testing_servers.talks import Json, Talk

PAGE = Found("https://a.example", "A", "It rains.")
SEARCH_TOOL: Json = {"type": "web_search_20250305", "name": "web_search"}
ADD: Json = {"name": "add", "input_schema": {"type": "object", "properties": {}}}
SEARCHED = Answer([Text("Let me look."), Search("rain", [PAGE]), Text("It rains.", cites=[PAGE])])
PAUSED = Answer([Text("Let me look."), Search("rain", None)], stop="pause")
WENT_ON = Answer([Search(results=[PAGE]), Text("It rains.", cites=[PAGE])])


class Searching(Talk):
    """A conversation in which the service may search, and its server."""

    def __init__(self, server: AnthropicServer, client: anthropic.AsyncAnthropic) -> None:
        super().__init__(client, "Rain?", tools=[SEARCH_TOOL, ADD])
        self.server = server


@asynccontextmanager
async def talk(*script: Reply) -> AsyncIterator[Searching]:
    async with AnthropicServer(script) as server, ANTHROPIC.client(server.base_url) as client:
        yield Searching(server, client)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_search_comes_and_goes_back(stream: bool) -> None:
    async with talk(SEARCHED, Answer("Yes.")) as conversation:
        answer = await conversation.ask(stream=stream)
        assert [block.type for block in answer.content] == [
            "text",
            "server_tool_use",
            "web_search_tool_result",
            "text",
        ]
        call, result, said = answer.content[1:]
        assert (call.name, call.input) == ("web_search", {"query": "rain"})
        assert result.tool_use_id == call.id
        assert [(page.url, page.title) for page in result.content] == [("https://a.example", "A")]
        assert [(cited.url, cited.cited_text) for cited in said.citations] == [("https://a.example", "It rains.")]
        await conversation.ask("Sure?", stream=stream)
        assert conversation.server.refused == []
        assert conversation.server.requests[1].seen.searches == (call.id,)


async def test_a_search_that_failed() -> None:
    async with talk(
        Answer([Search("rain", error="max_uses_exceeded"), Text("Sorry.")]), Answer("Yes.")
    ) as conversation:
        answer = await conversation.ask()
        assert answer.content[1].content.error_code == "max_uses_exceeded"
        await conversation.ask("Sure?")
        assert conversation.server.refused == []


async def test_a_paused_answer_goes_on() -> None:
    async with talk(PAUSED, WENT_ON, Answer("Yes.")) as conversation:
        paused = await conversation.ask()
        assert (paused.stop_reason, paused.content[-1].type) == ("pause_turn", "server_tool_use")
        rest = await conversation.ask()
        assert rest.content[0].tool_use_id == paused.content[-1].id
        assert rest.stop_reason == "end_turn"
        await conversation.ask("Sure?")
        assert conversation.server.refused == []
        assert conversation.server.requests[1].seen.roles == ("user", "assistant")


async def test_only_a_paused_answer_goes_on() -> None:
    async with talk(SEARCHED) as conversation:
        await conversation.ask()
        with pytest.raises(anthropic.BadRequestError, match="does not support assistant message prefill"):
            await conversation.ask()


async def test_a_paused_answer_is_not_left_open() -> None:
    async with talk(PAUSED) as conversation:
        await conversation.ask()
        with pytest.raises(anthropic.BadRequestError, match="without a corresponding `web_search_tool_result` block"):
            await conversation.ask("Never mind.")


async def test_a_search_beside_a_call_of_the_clients() -> None:
    first = Answer([Reasoning("Hm."), Search("rain", [PAGE]), ToolCall("add", id="toolu_1")])
    async with talk(first, Answer("Yes.")) as conversation:
        await conversation.ask()
        result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"}
        conversation.messages.append({"role": "user", "content": [result]})
        await conversation.ask()
        assert conversation.server.refused == []


def _content(blocks: list[Json]) -> None:
    blocks[2]["content"][0]["encrypted_content"] += "x"


def _index(blocks: list[Json]) -> None:
    blocks[3]["citations"][0]["encrypted_index"] += "x"


def _without_result(blocks: list[Json]) -> None:
    del blocks[2]


def _without_call(blocks: list[Json]) -> None:
    del blocks[1]


def _other_id(blocks: list[Json]) -> None:
    blocks[1]["id"] = "toolu_1"


CHANGES: list[tuple[Callable[[list[Json]], None], str]] = [
    (_content, "messages.1.content.2.content.0: Invalid `encrypted_content` in `search_result` block"),
    (_index, "messages.1.content.3.citations.0: Invalid `encrypted_index`"),
    (_without_result, "messages.1: `web_search` tool use with id `srvtoolu_"),
    (_without_call, "messages.1.content.1: unexpected `tool_use_id` found in `web_search_tool_result` blocks"),
    (_other_id, "messages.1.content.1.server_tool_use.id: String should match pattern '^srvtoolu_"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])
async def test_what_is_changed_is_refused(change: Callable[[list[Json]], None], words: str) -> None:
    async with talk(SEARCHED) as conversation:
        await conversation.ask()
        change(conversation.messages[-1]["content"])
        with pytest.raises(anthropic.BadRequestError) as caught:
            await conversation.ask("Sure?")
        assert words in caught.value.message
        assert [one.status for one in conversation.server.refused] == [400]


TOOLS: list[tuple[Sequence[Json], str]] = [
    (
        [{**SEARCH_TOOL, "allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}],
        "tools.0.web_search_20250305: Only one of `allowed_domains` and `blocked_domains`",
    ),
    ([{**SEARCH_TOOL, "max_uses": 0}], "tools.0.web_search_20250305.max_uses: Input should be greater than 0"),
    ([{**SEARCH_TOOL, "name": "search"}], "tools.0.web_search_20250305.name: Input should be 'web_search'"),
    ([{**SEARCH_TOOL, "type": "web_search_1999"}], "tools.0: Input tag 'web_search_1999' found"),
    ([SEARCH_TOOL, SEARCH_TOOL], "tools: Tool names must be unique"),
    ([ADD], "Script: the script searches, and the request has no web_search tool"),
]


@pytest.mark.parametrize(("tools", "words"), TOOLS, ids=range(len(TOOLS)))
async def test_tools_that_are_refused(tools: Sequence[Json], words: str) -> None:
    async with talk(SEARCHED) as conversation:
        conversation.body["tools"] = tools
        with pytest.raises(anthropic.BadRequestError) as caught:
            await conversation.ask()
        assert words in caught.value.message


async def test_options_of_a_search() -> None:
    place = {"type": "approximate", "city": "Vienna"}
    async with talk(SEARCHED) as conversation:
        conversation.body["tools"] = [
            {**SEARCH_TOOL, "allowed_domains": ["a.example"], "max_uses": 2, "user_location": place}
        ]
        await conversation.ask()
        assert conversation.server.refused == []
