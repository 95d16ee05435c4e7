"""What became of attempts, where a log tells it only roundabout."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from chatfold import Agent, tool
from chatfold.rerunning.fates import fates
from chatfold.rerunning.run import rerun_events
from chatfold.testing import ScriptedProvider, UseTool, VirtualTime, turn
from chatstate import commands as c
from chatstate.classify import X
from events.envelope import Recorded
from events.ids import message_id
from events.messages import FinishReason
from events.parts import ToolResultPart
from events.reasons import Reason
from events.records import AttemptReport
from events.vocabulary import InterruptionFinished, ToolResultRecorded
from store.contract import Append, AppendResult
from store.memory import MemoryStore
from tests.chatstate import build as b
from tests.chatstate.reach import generating, reach, running_tools


def test_a_call_whose_tool_said_that_it_did_not_happen_had_begun_to_be_asked() -> None:
    chat = reach(X.R0, work=running_tools("asked"))
    (call,) = chat.calls
    chat.do(b.acquire("w2", dead=True))
    start = chat.do(b.start(chat, "tools", call.key))
    chat.do(c.Interrupt())
    unstarted = ToolResultPart(call=call.key, is_error=True, reason=Reason.NOT_STARTED)
    chat.do(c.RecordToolResult(fence=chat.fence(), result=unstarted))
    chat.do(b.finish_interruption(chat))
    found = dict(fates(chat.log))
    assert found[start.version].begun
    assert found[start.version].before == {call.key}


@pytest.mark.parametrize(("reason", "ended"), [("stop", True), ("unknown", False)])
def test_an_answer_that_an_edit_overtook_may_have_come_to_its_end(reason: FinishReason, ended: bool) -> None:
    chat = reach(X.R0, work=generating)
    start = chat.log[-1].version
    chat.do(c.EditMessage(target=message_id(1, 1), message=b.user("Rather this.")))
    cut = AttemptReport(step=replace(b.STEP, finish_reason=reason))
    chat.do(replace(b.start(chat), cut=cut))
    assert dict(fates(chat.log))[start].ends is ended


@tool
async def first() -> str:
    """End at once."""
    return "one"


@tool
async def second() -> str:
    """End a little later."""
    await asyncio.sleep(1)
    return "two"


class Slow(MemoryStore):
    """A store that is away while the first result is to be written."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.back = asyncio.Event()

    async def append(self, append: Append) -> AppendResult:
        """Wait with a result, and let all else pass."""
        if (
            any(event.stored.envelope.type == ToolResultRecorded.type for event in append.events)
            and not self.back.is_set()
        ):
            self.asked.set()
            await self.back.wait()
        return await super().append(append)


def test_a_result_that_was_being_written_when_two_interruptions_came_is_written_by_itself() -> None:
    time = VirtualTime()
    model = ScriptedProvider([turn(UseTool("first", {}), UseTool("second", {})), "Hello."])

    async def talk() -> list[Recorded]:
        store = Slow()
        who = Agent(name="support", model="scripted", tools=[first, second])
        async with time.engine([who], providers={"scripted": model}, store=store) as engine:
            chat = (await engine.create_chat("support", "Go.")).chat
            await store.asked.wait()
            await asyncio.sleep(2)
            await engine.interrupt(chat)
            await engine.send_message(chat, "Stop.", busy="interrupt")
            store.back.set()
            await engine.settled(chat)
            return list(await engine.events(chat))

    log = time.run(talk)
    types = [each.envelope.type for each in log]
    at = types.index(InterruptionFinished.type)
    assert types[at - 4 : at] == [
        "turn_interrupted",
        "message_sent_interrupting",
        "tool_result_recorded",
        "tool_result_recorded",
    ]
    assert rerun_events("log", log).same
