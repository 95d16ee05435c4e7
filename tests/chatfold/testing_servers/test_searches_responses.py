"""Searches that OpenAI's service runs, and the responses that it keeps and forgets."""

from typing import Any

import openai
import pytest

from chatfold.testing.servers import Answer, Found, OpenAIChatServer, OpenAIResponsesServer, Reasoning, Search, Text
from tests.chatfold.testing_servers.kits import CHAT, RESPONSES

Json = dict[str, Any]
PAGE = Found("https://a.example", "A")
TOOL: Json = {"type": "web_search"}
SEARCHED = Answer([Reasoning("Hm."), Search("rain", [PAGE]), Text("It rains.", cites=[PAGE])])
USER: Json = {"role": "user", "content": "Rain?"}
MORE: Json = {"role": "user", "content": "Sure?"}
ENCRYPTED = "reasoning.encrypted_content"
SOURCES = "web_search_call.action.sources"


async def _ask(client: openai.AsyncOpenAI, items: list[Json], *, stream: bool = False, **options: Any) -> Any:
    body = {"model": "gpt-test", "input": items, "tools": [TOOL], "store": False, "include": [ENCRYPTED], **options}
    if not stream:
        return await client.responses.create(**body)
    async for event in await client.responses.create(**body, stream=True):
        if event.type == "response.completed":
            return event.response
    return None


def _given_back(response: Any) -> list[Json]:
    return [item.model_dump(exclude_none=True) for item in response.output]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_search_comes_and_goes_back(stream: bool) -> None:
    async with (
        OpenAIResponsesServer([SEARCHED, Answer("Yes.")]) as server,
        RESPONSES.client(server.base_url) as client,
    ):
        response = await _ask(client, [USER], stream=stream)
        thought, search, said = response.output
        assert (search.type, search.status, search.action.query) == ("web_search_call", "completed", "rain")
        assert search.action.sources is None
        assert [cited.url for cited in said.content[0].annotations] == ["https://a.example"]
        await _ask(client, [USER, *_given_back(response), MORE], stream=stream)
        assert server.refused == []
        seen = server.requests[1].seen
        assert seen.roles == ("user", "reasoning", "web_search_call", "assistant", "user")
        assert (seen.searches, seen.reasoning, seen.chained) == ((search.id,), (thought.encrypted_content,), 0)


async def test_the_events_of_a_search() -> None:
    async with OpenAIResponsesServer([SEARCHED]) as server, RESPONSES.client(server.base_url) as client:
        stream = await client.responses.create(
            model="gpt-test", input="Rain?", tools=[{"type": "web_search"}], stream=True
        )
        kinds = [event.type async for event in stream]
    first = kinds.index("response.web_search_call.in_progress")
    assert kinds[first - 1 : first + 4] == [
        "response.output_item.added",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.output_item.done",
    ]
    assert kinds.count("response.output_text.annotation.added") == 1


async def test_sources_are_told_to_who_asks() -> None:
    async with OpenAIResponsesServer([SEARCHED, Answer("Yes.")]) as server, RESPONSES.client(server.base_url) as client:
        response = await _ask(client, [USER], include=[ENCRYPTED, SOURCES])
        assert [source.url for source in response.output[1].action.sources] == ["https://a.example"]
        await _ask(client, [USER, *_given_back(response), MORE])
        assert server.refused == []


async def test_encrypted_reasoning_is_given_to_who_asks() -> None:
    async with OpenAIResponsesServer([SEARCHED]) as server, RESPONSES.client(server.base_url) as client:
        response = await _ask(client, [USER], include=[])
        assert response.output[0].encrypted_content is None
        with pytest.raises(openai.NotFoundError, match="Items are not persisted when `store` is set to false"):
            await _ask(client, [USER, *_given_back(response), MORE])


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        ([1, 2], "of type 'web_search_call' was provided without its required 'reasoning' item"),
        ([0, 2], "of type 'reasoning' was provided without its required following item"),
        ([1, 0, 2], "was provided without its required"),
        ([0], "of type 'reasoning' was provided without its required following item"),
    ],
)
async def test_items_come_back_in_their_order(keep: list[int], words: str) -> None:
    async with OpenAIResponsesServer([SEARCHED]) as server, RESPONSES.client(server.base_url) as client:
        items = _given_back(await _ask(client, [USER]))
        with pytest.raises(openai.BadRequestError, match=words):
            await _ask(client, [USER, *(items[at] for at in keep), MORE])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"action": {"type": "search", "query": "snow"}}, r"Invalid value for 'input\[2\].action'"),
        ({"id": "ws_unknown"}, "Item with id 'ws_unknown' not found"),
        ({"id": "fc_1"}, "Expected an ID that begins with 'ws'"),
        ({"status": "done"}, "Invalid value: 'done'"),
    ],
)
async def test_a_search_comes_back_as_it_was(change: Json, words: str) -> None:
    searched = Answer([Text("Let me look."), Search("rain", [PAGE]), Text("It rains.")])
    async with OpenAIResponsesServer([searched]) as server, RESPONSES.client(server.base_url) as client:
        items = _given_back(await _ask(client, [USER]))
        items[1] |= change
        with pytest.raises(openai.APIStatusError, match=words):
            await _ask(client, [USER, *items, MORE])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tools": [{**TOOL, "filters": {"allowed_domains": ["a"], "blocked_domains": ["b"]}}]}, "Only one of"),
        ({"tools": [{**TOOL, "search_context_size": "huge"}]}, "Invalid value: 'huge'"),
        ({"include": ["web_search_call.pages"]}, "Invalid value: 'web_search_call.pages'"),
        ({"tools": []}, "Script: the script searches, and the request has no web_search tool"),
    ],
)
async def test_options_that_are_refused(options: Json, words: str) -> None:
    async with OpenAIResponsesServer([SEARCHED]) as server, RESPONSES.client(server.base_url) as client:
        with pytest.raises(openai.BadRequestError, match=words):
            await _ask(client, [USER], **options)


async def test_a_response_is_kept_until_it_is_forgotten() -> None:
    async with OpenAIResponsesServer([SEARCHED, Answer("Yes.")]) as server, RESPONSES.client(server.base_url) as client:
        first = await _ask(client, [USER], store=True)
        second = await _ask(client, [MORE], store=True, previous_response_id=first.id)
        seen = server.requests[1].seen
        assert (seen.chained, seen.roles[-2:]) == (4, ("assistant", "user"))
        server.issued.forget(second.id)
        assert {item.id for item in first.output} <= set(server.issued.items)  # the first one still has them
        assert second.output[0].id not in server.issued.items
        server.issued.forget()
        for response in (first, second):
            with pytest.raises(openai.BadRequestError) as caught:
                await _ask(client, [MORE], previous_response_id=response.id)
            assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
        reference = {"type": "item_reference", "id": first.output[2].id}
        with pytest.raises(openai.NotFoundError, match="not found"):
            await _ask(client, [reference, MORE])


async def test_what_was_not_to_be_kept_is_not() -> None:
    async with OpenAIResponsesServer([SEARCHED]) as server, RESPONSES.client(server.base_url) as client:
        response = await _ask(client, [USER])
        with pytest.raises(openai.BadRequestError, match="not found"):
            await _ask(client, [MORE], previous_response_id=response.id)


@pytest.mark.parametrize("answer", [Answer([Search("rain")]), Answer("Hm.", stop="pause")], ids=["search", "pause"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_chat_completions_has_neither_searches_nor_pauses(answer: Answer, stream: bool) -> None:
    async with OpenAIChatServer([answer]) as server:
        with pytest.raises(openai.BadRequestError, match="Script: Chat Completions has no"):
            await CHAT.ask(server, stream=stream)


async def test_responses_has_no_pauses() -> None:
    for answer in (Answer("Hm.", stop="pause"), Answer([Search("rain", None)]), Answer([Search()])):
        async with OpenAIResponsesServer([answer]) as server, RESPONSES.client(server.base_url) as client:
            with pytest.raises(openai.BadRequestError, match="Script: Responses has no"):
                await _ask(client, [USER])


async def test_a_search_that_failed_has_no_results() -> None:
    answer = Answer([Search("rain", None, error="unavailable"), Text("Sorry.")])
    async with OpenAIResponsesServer([answer]) as server, RESPONSES.client(server.base_url) as client:
        response = await _ask(client, [USER], include=[SOURCES])
        assert (response.output[0].status, response.output[0].action.sources) == ("failed", [])
