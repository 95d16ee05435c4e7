"""The requests of an answer and of a compaction are made in one place: they differ in nothing that is cached."""

from __future__ import annotations

import pytest

from chatfold import Agent, Engine, tool
from chatfold.testing import ModelRequest, ScriptedProvider, Turn, turn
from events.records import RequestDigests
from events.vocabulary import CompactionCommitted, StepCommitted
from generation.context import ContextFile, StaticContext
from generation.digests import digest_request
from store import open_store


@tool
async def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize("context", [None, StaticContext([ContextFile(path="AGENTS.md", text="In Latin.")])])
async def test_answer_and_compaction_share_what_stands_first(context: StaticContext | None) -> None:
    asked: list[ModelRequest] = []

    def model(request: ModelRequest) -> Turn:
        asked.append(request)
        return turn("Done.")

    agent = Agent(name="a", model="scripted", system="Be terse.", tools=[look], context=context)
    async with Engine(open_store("memory://"), [agent], providers={"scripted": ScriptedProvider(model)}) as engine:
        await engine.create_chat("a", "Hi", chat_id="chat")
        await engine.settled("chat")
        await engine.compact("chat")
        await engine.settled("chat")
        events = [recorded.event for recorded in await engine.events("chat")]
    answer, summary = asked
    assert (answer.system, answer.tools, answer.options) == (summary.system, summary.tools, summary.options)
    assert len(answer.system) == 1 + (context is not None)
    assert summary.messages[: len(answer.messages)] == tuple(answer.messages)
    assert (answer.tool_choice_none, summary.tool_choice_none) == (False, True)
    recorded: list[RequestDigests | None] = [
        event.report.request if event.report is not None else None
        for event in events
        if isinstance(event, StepCommitted | CompactionCommitted)
    ]
    assert recorded == [digest_request(request) for request in asked]
