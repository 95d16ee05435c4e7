"""Searches that the model's service runs: in a conversation that is interrupted, edited, forked, compacted."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chatfold import WebSearch
from chatfold.stream import PartItem
from chatfold.testing.servers import (
    Answer,
    AnthropicServer,
    Fail,
    Found,
    Gate,
    Reasoning,
    RecordedRequest,
    Reply,
    Search,
    Text,
    ToolCall,
    Usage,
)
from events.parts import SourcePart, ToolResultPart
from events.state import ChatState
from events.vocabulary import StepCommitted, TurnFailed
from generation.parts import LiveCall, LiveSource
from generation.tools.contract import tool
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, Place, stage, texts
from tests.e2e.tools import add

PAGE = Found("https://a.example", "A", "It rains.")
THOUGHT = Reasoning("Let me look.")
SEARCHED = Answer([THOUGHT, Search("rain", [PAGE]), Text("It rains.", cites=[PAGE])])
PAUSED = Answer([THOUGHT, Text("One moment."), Search("rain", None)], stop="pause")
WENT_ON = Answer([Search(results=[PAGE]), Text("It rains.", cites=[PAGE])])
SEARCHES: dict[str, Any] = {"provider_tools": [WebSearch(allowed_domains=["a.example"])]}


@tool
async def wait() -> str:
    """Wait."""
    return "waited"


@pytest.fixture(params=["anthropic", "openai"])
def place(request: pytest.FixtureRequest, url: str) -> Place:
    """The services that search."""
    return Place(provider=request.param, url=url, agent=f"agent-{uuid.uuid4().hex}")


@pytest.fixture
def pausing(url: str) -> Place:
    """The service that pauses."""
    return Place(provider="anthropic", url=url, agent=f"agent-{uuid.uuid4().hex}")


def found(state: ChatState) -> list[str]:
    messages = state.need_transcript("sources").messages
    return [part.url.text for item in messages for part in item.message.parts if isinstance(part, SourcePart)]


async def test_a_search_beside_tools_of_ours(place: Place) -> None:
    gate = Gate()
    first = Answer(
        [THOUGHT, Search("rain", [PAGE]), Reasoning("And the sum."), ToolCall("add", {"a": 1, "b": 2})],
        gate=gate,
        gate_after=1,
    )
    script = [first, Answer([THOUGHT, Text("Three drops.")]), Answer("Bye.")]
    async with stage(place, script, tools=[add], **SEARCHES) as scene:
        chat = await scene.start("How much rain?")
        # Who comes to the stream when the answer is committed sees no parts of it.
        await scene.watchers[chat].until(lambda items: any(isinstance(item, PartItem) for item in items))
        gate.release()
        state = await scene.settled(chat)
        assert texts(state) == ["Three drops."]
        assert found(state) == [PAGE.url]
        results = [
            part.provider_executed
            for item in state.need_transcript("results").messages
            for part in item.message.parts
            if isinstance(part, ToolResultPart)
        ]
        assert results == [True, False]
        await scene.engine.send_message(chat, "Thanks.")
        await scene.settled(chat)
        assert [len(request.seen.searches) for request in scene.server.requests] == [0, 1, 1]
        assert [request.body["tools"][-1]["type"][:10] for request in scene.server.requests] == ["web_search"] * 3
        await scene.watchers[chat].until_version(state.control.version)
        shown = [item.part for item in scene.watchers[chat].items if isinstance(item, PartItem)]
        assert any(isinstance(part, LiveCall) and part.provider_executed for part in shown)
        assert any(isinstance(part, LiveSource) for part in shown)
        await check(scene, chat)


async def test_it_is_offered_whichever_tools_of_ours_are_active(place: Place) -> None:
    async with stage(place, [SEARCHED, Answer("Yes.")], tools=[add, wait], active_tools=["add"], **SEARCHES) as scene:
        chat = await scene.start("Rain?")
        await scene.settled(chat)
        await scene.engine.set_active_tools(chat, ["wait"])
        await scene.engine.send_message(chat, "Sure?")
        await scene.settled(chat)
        offered = [request.body["tools"] for request in scene.server.requests]
        assert [tools[0]["name"] for tools in offered] == ["add", "wait"]
        assert [tools[1]["type"][:10] for tools in offered] == ["web_search"] * 2
        assert [len(tools) for tools in offered] == [2, 2]
        await check(scene, chat)


async def test_it_comes_back_over_interrupt_edit_fork_and_compaction(place: Place) -> None:
    gate = Gate()

    def script(request: RecordedRequest) -> Reply:
        if request.user_texts[-1] == "Cut it.":
            return Answer([THOUGHT, Search("snow", [PAGE]), Text("It does not snow at all.")], gate=gate, gate_after=3)
        return SEARCHED if request.user_texts[-1] == "Rain?" else Answer([THOUGHT, Text("Yes.")])

    async with stage(place, script, **SEARCHES) as scene:
        chat = await scene.start("Rain?")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Cut it.")
        await gate.reached()
        await scene.engine.interrupt(chat)
        gate.release()
        state = await scene.settled(chat)
        await scene.engine.send_message(chat, "Sure?")
        state = await scene.settled(chat)
        asked = [item for item in state.need_transcript("edit").messages if item.message.role == "user"]
        await scene.engine.edit_message(chat, asked[-1].id, "Really?")
        await scene.settled(chat)
        fork = (await scene.engine.fork(chat)).chat
        await scene.engine.send_message(fork, "And here?")
        await scene.settled(fork)
        assert len(scene.server.requests[-1].seen.searches) == len(scene.server.requests[-2].seen.searches) >= 1
        await scene.engine.compact(chat)
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Rain?")
        state = await scene.settled(chat)
        assert found(state).count(PAGE.url) >= 2
        await check(scene, chat, fork)


async def test_a_chat_changes_its_model_and_back(place: Place) -> None:
    other = {"anthropic": "openai", "openai": "anthropic"}[place.provider]
    script = [SEARCHED, Answer("Yes.")]
    async with stage(place, script, others={other: [Answer("I was told so.")]}, **SEARCHES) as scene:
        chat = await scene.start("Rain?")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Sure?", model=f"{other}/another")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Still?", model=place.model().reference)
        await scene.settled(chat)
        assert len(scene.server.requests[1].seen.searches) == 1
        assert len(scene.others[0].requests[0].seen.searches) == 0
        assert "web_search was run with" in scene.others[0].requests[0].raw.decode()
        await check(scene, chat)


async def test_a_model_that_cannot_search_fails_the_turn_until_another_is_chosen(place: Place) -> None:
    script = [SEARCHED]
    async with stage(place, script, others={"openai-chat": []}, **SEARCHES) as scene:
        chat = await scene.start("Rain?", model="openai-chat/m")
        state = await scene.settled(chat, "error")
        failed = [each.event for each in await scene.engine.events(chat) if isinstance(each.event, TurnFailed)]
        assert [event.error.kind for event in failed] == ["config"]
        assert "openai-chat has no search" in failed[0].error.message.text
        await scene.engine.set_model(chat, place.model().reference)
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["It rains."]


async def test_an_answer_that_pauses_is_one_step(pausing: Place) -> None:
    first = Answer(PAUSED.parts, stop="pause", usage=Usage(input=700, output=3))
    rest = Answer(WENT_ON.parts, usage=Usage(input=720, output=4))
    model = pausing.model(context_limit=1000, compaction_threshold=80)
    async with stage(pausing, [first, rest, Answer("Yes.")], model=model, **SEARCHES) as scene:
        assert isinstance(scene.server, AnthropicServer)
        scene.server.issued.covers = "request"
        chat = await scene.start("Rain?")
        state = await scene.settled(chat)
        assert texts(state) == ["One moment.It rains."]
        (step,) = [each.event for each in await scene.engine.events(chat) if isinstance(each.event, StepCommitted)]
        assert step.added[0].step is not None
        assert step.added[0].step.usage.input == state.control.usage.input == 1420
        assert state.control.indexes.context_tokens == 720  # what is over the threshold is the prompt, not the sum
        await scene.engine.send_message(chat, "Sure?")
        await scene.settled(chat)
        assert len(scene.server.requests) == 3
        await check(scene, chat)


async def test_an_answer_that_paused_is_interrupted(pausing: Place) -> None:
    gate = Gate()
    rest = Answer([Search(results=[PAGE]), Text("It rains all day long.")], gate=gate, gate_after=1)
    async with stage(pausing, [PAUSED, rest, Answer("Yes.")], **SEARCHES) as scene:
        chat = await scene.start("Rain?")
        await gate.reached()
        await scene.engine.interrupt(chat)
        gate.release()
        state = await scene.settled(chat)
        assert texts(state)[0].startswith("One moment.")
        await scene.engine.send_message(chat, "Sure?")
        await scene.settled(chat)
        await check(scene, chat)


async def test_a_pause_that_is_cut_is_tried_again_from_the_start(pausing: Place) -> None:
    cut = Answer([Search(results=[PAGE]), Text("It rains.")], cut_after=1)
    async with stage(pausing, [PAUSED, cut, PAUSED, WENT_ON, Answer("Yes.")], **SEARCHES) as scene:
        chat = await scene.start("Rain?")
        state = await scene.settled(chat)
        assert texts(state) == ["One moment.It rains."]
        await scene.engine.send_message(chat, "Sure?")
        await scene.settled(chat)
        assert [request.seen.roles[-1] for request in scene.server.requests] == ["user", "assistant"] * 2 + ["user"]
        await check(scene, chat)


async def test_a_compaction_knows_what_was_found(place: Place) -> None:
    """The chat's own model has it as it was, and without its tools too; another service's is told as text."""
    other = "openai" if place.provider == "anthropic" else "anthropic"
    large = Fail(413, "Request too large.")
    script: list[Reply] = [SEARCHED, large, Answer("They asked for the weather."), Answer("Yes.")]
    async with stage(place, script, **SEARCHES) as scene:
        chat = await scene.start("Rain?")
        await scene.settled(chat)
        await scene.engine.compact(chat)
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Sure?")
        await scene.settled(chat)
        _, first, again, _ = scene.server.requests
        assert ["tools" in request.body for request in (first, again)] == [True, False]
        assert len(again.seen.searches) == 1
        await check(scene, chat)
    theirs: dict[str, Sequence[Reply]] = {other: [Answer("They asked for the weather.")]}
    renamed = replace(place, agent=f"{place.agent}-2")
    async with stage(renamed, [SEARCHED], others=theirs, compaction_model=f"{other}/{MODEL}", **SEARCHES) as scene:
        chat = await scene.start("Rain?")
        await scene.settled(chat)
        await scene.engine.compact(chat)
        await scene.settled(chat)
        (request,) = scene.others[0].requests
        assert len(request.seen.searches) == 0
        assert "web_search was run with" in request.raw.decode()
        await check(scene, chat)
