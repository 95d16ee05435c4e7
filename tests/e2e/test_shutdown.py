"""A worker that stops in the middle of a turn, and one that goes on with it."""

from chatfold.stream import PartItem, PreviewReset
from chatfold.testing.servers import Answer, Fail, Gate, Reply, ToolCall
from events.vocabulary import Released
from tests.e2e.checks import check
from tests.e2e.kit import Place, Scene, outputs, stage, texts
from tests.e2e.tools import Door, add

LONG = "An answer that nobody will see the end of."


async def _restart(scene: Scene) -> None:
    worker = scene.engine.worker
    assert worker is not None
    await worker.stop()
    assert worker.running == ()
    await worker.start()


async def test_shutdown_in_the_middle_of_a_text(place: Place) -> None:
    gate = Gate()
    async with stage(place, [Answer(LONG, gate=gate, gate_after=2), Answer("Anew.")]) as scene:
        chat = await scene.start("Hello")
        await gate.reached()
        watcher = scene.watchers[chat]
        await watcher.until(lambda items: sum(isinstance(item, PartItem) for item in items) == 2)
        await _restart(scene)
        state = await scene.settled(chat)
        gate.release()
        assert texts(state) == ["Anew."]
        released = [each.event for each in await scene.engine.events(chat) if isinstance(each.event, Released)]
        assert [event.reason for event in released] == ["shutdown"]
        # What the cut call is known to have cost is not forgotten.
        assert released[0].report is not None
        await watcher.until_version(state.control.version)
        assert sum(isinstance(item, PreviewReset) for item in watcher.items) == 1
        await check(scene, chat)


async def test_shutdown_while_a_tool_ends_within_the_grace(place: Place) -> None:
    door = Door("door")
    script = [Answer([ToolCall("door", {"to": "a"}), ToolCall("add", {"a": 1, "b": 2})]), Answer("Done.")]
    async with stage(place, script, tools=[door.tool(), add]) as scene:
        chat = await scene.start("Go")
        await door.until_begun()
        await scene.until(chat, lambda control: any(call.recorded for call in control.indexes.open_calls))
        worker = scene.engine.worker
        assert worker is not None
        door.opened.set()
        await _restart(scene)
        state = await scene.settled(chat)
        assert outputs(state) == ["door to a", 3]
        assert door.runs == 1
        assert texts(state) == ["Done."]
        await check(scene, chat)


async def test_shutdown_while_a_retry_waits(place: Place) -> None:
    script: list[Reply] = [Fail(429, headers={"retry-after-ms": "300"}), Answer("Here.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Hello")
        await scene.until(chat, lambda control: control.not_before is not None)
        await _restart(scene)
        state = await scene.settled(chat)
        assert texts(state) == ["Here."]
        assert not any(isinstance(each.event, Released) for each in await scene.engine.events(chat))
        await check(scene, chat)
