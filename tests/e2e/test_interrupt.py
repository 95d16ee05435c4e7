"""Interrupting: in the middle of a text, of a tool, of the wait for a retry; by a message; and going on after it."""

import asyncio
import threading

import pytest

from chatfold.settings import Settings
from chatfold.stream import PartItem
from chatfold.testing.servers import Answer, Fail, Gate, Reply, Text, ToolCall
from generation.tools.contract import ToolContext, tool
from tests.e2e.checks import check
from tests.e2e.kit import SETTINGS, Place, outputs, stage, texts
from tests.e2e.tools import Door

LONG = "One two three four five six seven eight nine ten."


async def test_interrupt_in_the_middle_of_a_text_then_resume(place: Place) -> None:
    gate = Gate()
    script = [Answer(LONG, gate=gate, gate_after=3), Answer("Going on.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Count")
        await gate.reached()
        await scene.watchers[chat].until(lambda items: sum(isinstance(item, PartItem) for item in items) == 3)
        receipt = await scene.engine.interrupt(chat)
        assert receipt.state == "I0"
        state = await scene.settled(chat)
        assert texts(state) == [LONG[:24]]
        assert scene.server.requests[0].closed_early or await _hung_up(scene.server.requests[0])
        gate.release()
        assert state.control.owed
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == [LONG[:24], "Going on."]
        await check(scene, chat)


async def _hung_up(request: object) -> bool:
    await request.hung_up.wait()  # type: ignore[attr-defined]
    return True


async def test_interrupt_before_the_first_part(place: Place) -> None:
    gate = Gate()
    script = [Answer(LONG, gate=gate), Answer("Now.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Count")
        await gate.reached()
        await scene.engine.interrupt(chat)
        state = await scene.settled(chat)
        assert texts(state) == []
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["Now."]
        gate.release()
        await check(scene, chat)


async def test_interrupt_in_the_middle_of_a_tool_that_ends_within_the_grace(place: Place) -> None:
    quick, slow = Door("quick"), Door("slow")
    script = [Answer([ToolCall("quick", {"to": "a"}), ToolCall("slow", {"to": "b"})]), Answer("Both came.")]
    async with stage(place, script, tools=[quick.tool(), slow.tool()]) as scene:
        chat = await scene.start("Go")
        await quick.until_begun()
        await slow.until_begun()
        quick.opened.set()
        await scene.until(chat, lambda control: any(call.recorded for call in control.indexes.open_calls))
        await scene.engine.interrupt(chat)
        slow.opened.set()
        state = await scene.settled(chat)
        assert outputs(state) == ["quick to a", "slow to b"]
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["Both came."]
        await check(scene, chat)


async def test_interrupt_in_the_middle_of_a_tool_that_outlasts_the_grace(place: Place) -> None:
    door = Door("door")
    script = [Answer([Text("Wait."), ToolCall("door", {"to": "a"})]), Answer("Lost.")]
    short = Settings(**{**SETTINGS.model_dump(), "grace": 0.05})
    async with stage(place, script, tools=[door.tool()], settings=short) as scene:
        chat = await scene.start("Go")
        await door.until_begun()
        await scene.engine.interrupt(chat)
        state = await scene.settled(chat)
        assert outputs(state) == ["interrupted_unknown"]
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["Wait.", "Lost."]
        await check(scene, chat)


@pytest.mark.parametrize("how", ["waits", "looks"])
async def test_interrupt_of_a_tool_that_listens_takes_no_longer_than_it(place: Place, how: str) -> None:
    """The grace is far longer than any test waits."""
    begun = threading.Event()

    @tool
    def waits(context: ToolContext) -> str:
        """Wait in a thread."""
        begun.set()
        return "told" if context.wait_cancelled(600) else "waited"

    @tool
    async def looks(context: ToolContext) -> str:
        """Look now and then."""
        begun.set()
        while not context.cancelled:  # noqa: ASYNC110 -- a context has no event of the loop
            await asyncio.sleep(0.01)
        return "told"

    script = [Answer([Text("Wait."), ToolCall(how, {})])]
    patient = Settings(**{**SETTINGS.model_dump(), "grace": 600.0})
    async with stage(place, script, tools=[waits, looks], settings=patient) as scene:
        chat = await scene.start("Go")
        await asyncio.to_thread(begun.wait)
        await scene.engine.interrupt(chat)
        assert outputs(await scene.settled(chat)) == ["told"]
        await check(scene, chat)


async def test_interrupt_while_a_retry_waits_then_resume(place: Place) -> None:
    script: list[Reply] = [Fail(429, headers={"retry-after-ms": "60000"}), Answer("Here.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Hello")
        control = await scene.until(chat, lambda control: control.not_before is not None)
        assert control.status == "pending"
        assert control.retry is not None
        assert control.retry.delay_us == 60_000_000
        receipt = await scene.engine.interrupt(chat)
        assert receipt.state == "W"
        await scene.engine.resume(chat)
        state = await scene.settled(chat)
        assert texts(state) == ["Here."]
        await check(scene, chat)


async def test_message_that_interrupts_in_the_middle_of_a_text(place: Place) -> None:
    gate = Gate()
    script = [Answer(LONG, gate=gate, gate_after=2), Answer("Yes?")]
    async with stage(place, script) as scene:
        chat = await scene.start("Count")
        await gate.reached()
        await scene.watchers[chat].until(lambda items: sum(isinstance(item, PartItem) for item in items) == 2)
        receipt = await scene.engine.send_message(chat, "Stop", busy="interrupt")
        assert receipt.state == "I1"
        state = await scene.settled(chat)
        assert texts(state) == [LONG[:16], "Yes?"]
        assert texts(state, "user") == ["Count", "Stop"]
        gate.release()
        await check(scene, chat)


async def test_promoted_message_interrupts_a_tool(place: Place) -> None:
    door = Door("door")
    script = [Answer([ToolCall("door", {"to": "a"})]), Answer("Second."), Answer("First.")]
    async with stage(place, script, tools=[door.tool()]) as scene:
        chat = await scene.start("Go")
        await door.until_begun()
        await scene.engine.send_message(chat, "one")
        receipt = await scene.engine.send_message(chat, "two")
        await scene.engine.promote_queued(chat, receipt.queued[0])
        door.opened.set()
        state = await scene.settled(chat)
        assert texts(state, "user") == ["Go", "two", "one"]
        assert outputs(state) == ["door to a"]
        await check(scene, chat)
