"""Forking: from the middle of a chat, and of one that runs."""

from chatfold.testing.servers import Answer, Gate, ToolCall
from events.vocabulary import StepCommitted
from tests.e2e.checks import check
from tests.e2e.kit import Place, outputs, stage, texts
from tests.e2e.tools import Door, add


async def test_fork_from_the_middle_and_resume(place: Place) -> None:
    script = [Answer([ToolCall("add", {"a": 1, "b": 2})]), Answer("Three."), Answer("It is three."), Answer("Four.")]
    async with stage(place, script, tools=[add]) as scene:
        chat = await scene.start("Sum", title="Sums")
        await scene.settled(chat)
        steps = [e.version for e in await scene.engine.events(chat) if isinstance(e.event, StepCommitted)]
        receipt = await scene.engine.fork(chat, at=steps[1], resume=True)
        fork = receipt.chat
        scene.watch(fork)
        state = await scene.settled(fork)
        assert texts(state) == ["It is three."]
        assert outputs(state) == [3]
        await scene.engine.send_message(fork, "And one?")
        state = await scene.settled(fork)
        assert texts(state) == ["It is three.", "Four."]
        assert texts(await scene.engine.state(chat)) == ["Three."]
        await check(scene, chat, fork)


async def test_fork_while_tools_and_text_run(place: Place) -> None:
    door, gate = Door("door"), Gate()
    script = [
        Answer([ToolCall("door", {"to": "a"})]),
        Answer("In the fork.", gate=gate, gate_after=1),
        Answer("In the origin."),
    ]
    async with stage(place, script, tools=[door.tool()]) as scene:
        chat = await scene.start("Go")
        await door.until_begun()
        receipt = await scene.engine.fork(chat)
        fork = receipt.chat
        scene.watch(fork)
        assert receipt.status == "waiting"
        await scene.engine.resume(fork)
        await gate.reached()
        door.opened.set()
        assert texts(await scene.settled(chat)) == ["In the origin."]
        gate.release()
        state = await scene.settled(fork)
        assert texts(state) == ["In the fork."]
        assert outputs(state) == ["fork"]
        await check(scene, chat, fork)
