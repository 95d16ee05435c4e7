"""Calls that the log has as started and that never began: what is said of them is that they had no effect."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from chatfold.hooks import HookCall, PythonHook
from chatfold.settings import Settings
from chatfold.testing.servers import Answer, ToolCall
from events.ids import ChatId
from events.reasons import Reason
from events.vocabulary import AttemptStarted, Released
from tests.e2e.checks import check
from tests.e2e.kit import PATIENCE, Place, Scene, outputs, results, stage, texts
from tests.e2e.tools import Door

SETTINGS = Settings(grace=0.2, poll=0.1)


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return Place(provider="anthropic", url=f"sqlite:///{tmp_path / 'chats.db'}", agent=f"agent-{uuid.uuid4().hex}")


class Porter:
    """A hook that never answers about the calls to one door, and lets the others pass."""

    def __init__(self, to: str) -> None:
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()
        self.deaf = True
        self._to = to

    def hook(self) -> PythonHook:
        return PythonHook(self._ask, ["pre_tool_use"], timeout=PATIENCE)

    async def _ask(self, call: HookCall) -> None:
        given: Any = call.facts["input"]
        if not self.deaf or given["to"] != self._to:
            return
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.gone.set()


def through(*places: str) -> Answer:
    return Answer([ToolCall("door", {"to": place}) for place in places])


async def restart(scene: Scene) -> None:
    worker = scene.engine.worker
    assert worker is not None
    await worker.stop()
    await worker.start()


async def test_an_interrupt_tells_what_began_from_what_hooks_were_still_asked_about(here: Place) -> None:
    door, porter = Door("door"), Porter("b")
    async with stage(
        here, [through("a", "b"), Answer("Well.")], tools=[door.tool()], hooks=[porter.hook()], settings=SETTINGS
    ) as scene:
        chat = await scene.start("Go")
        await door.until_begun()
        await asyncio.wait_for(porter.asked.wait(), PATIENCE)
        await scene.engine.interrupt(chat)
        state = await scene.settled(chat)
        assert [result.reason for result in results(state)] == [Reason.INTERRUPTED_UNKNOWN, Reason.NOT_STARTED]
        assert (door.runs, porter.gone.is_set()) == (1, True)
        await scene.engine.resume(chat)
        assert texts(await scene.settled(chat))[-1] == "Well."
        await check(scene, chat)


@pytest.mark.parametrize("crash", ["report", "rerun"])
async def test_a_worker_that_stops_loses_no_call_that_hooks_were_still_asked_about(here: Place, crash: str) -> None:
    door, porter = Door("door"), Porter("a")
    door.opened.set()
    tool = door.tool(crash=crash)
    async with stage(
        here, [through("a"), Answer("Well.")], tools=[tool], hooks=[porter.hook()], settings=SETTINGS
    ) as scene:
        chat = await scene.start("Go")
        await asyncio.wait_for(porter.asked.wait(), PATIENCE)
        porter.deaf = False
        await restart(scene)
        state = await scene.settled(chat)
        (result,) = results(state)
        assert result.reason is (None if crash == "rerun" else Reason.NOT_STARTED)
        assert door.runs == (crash == "rerun")
        await check(scene, chat)


@pytest.mark.parametrize("crash", ["report", "rerun"])
async def test_a_batch_that_is_stopped_before_it_begins_loses_no_call(here: Place, crash: str) -> None:
    """The worker is told to stop while the append that starts the tools is under way."""
    door = Door("door")
    door.opened.set()
    tool = door.tool(crash=crash)
    async with stage(here, [through("a"), Answer("Well.")], tools=[tool], settings=SETTINGS) as scene:
        journal, worker = scene.engine.runtime.journal, scene.engine.worker
        execute = journal.execute

        async def then_stop(chat: ChatId, *args: Any, **options: Any) -> Any:
            outcome = await execute(chat, *args, **options)
            if any(isinstance(each.event, AttemptStarted) and each.event.calls for each in outcome.recorded):
                assert worker is not None
                journal.execute = execute  # type: ignore[method-assign]
                worker._roster.runners[chat].stop("capacity")
            return outcome

        journal.execute = then_stop  # type: ignore[method-assign]
        chat = await scene.start("Go")
        state = await scene.settled(chat)
        (result,) = results(state)
        assert result.reason is (None if crash == "rerun" else Reason.NOT_STARTED)
        assert door.runs == (crash == "rerun")
        (released,) = [each.event for each in await scene.engine.events(chat) if isinstance(each.event, Released)]
        assert released.unknown == ()
        await check(scene, chat)


async def test_where_one_call_could_not_be_asked_about_what_ended_and_what_still_runs_are_told_apart(
    here: Place,
) -> None:
    door = Door("door")

    async def fail(call: HookCall) -> None:
        given: Any = call.facts["input"]
        if given["to"] == "b":
            await door.begun.wait()
            raise ConnectionError("down")

    hook = PythonHook(fail, ["pre_tool_use"], timeout=PATIENCE)
    async with stage(
        here, [through("a", "b"), Answer("Well.")], tools=[door.tool()], hooks=[hook], settings=SETTINGS
    ) as scene:
        chat = await scene.start("Go")
        state = await scene.settled(chat, "error")
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "hook_dispatch_failed"
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert [result.reason for result in results(state)] == [Reason.WORKER_LOST, None]
        assert outputs(state)[1] == "Not run: it could not be asked whether it may."
        await check(scene, chat)
