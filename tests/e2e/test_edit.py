"""Editing: in the middle of a text and of a tool, and of an older message."""

from chatfold.stream import PartItem, PreviewReset
from chatfold.testing.servers import Answer, Gate, ToolCall
from tests.e2e.checks import check
from tests.e2e.kit import Place, outputs, stage, texts
from tests.e2e.tools import Door


async def test_edit_in_the_middle_of_a_text(place: Place) -> None:
    gate = Gate()
    script = [Answer("An answer to what was asked.", gate=gate, gate_after=2), Answer("Better.")]
    async with stage(place, script) as scene:
        chat = await scene.start("Waht?")
        await gate.reached()
        watcher = scene.watchers[chat]
        await watcher.until(lambda items: sum(isinstance(item, PartItem) for item in items) == 2)
        state = await scene.engine.state(chat)
        target = state.need_transcript("test").messages[0].id
        await scene.engine.edit_message(chat, target, "What?")
        state = await scene.settled(chat)
        assert texts(state, "user") == ["What?"]
        assert texts(state) == ["Better."]
        gate.release()
        await watcher.until_version(state.control.version)
        assert sum(isinstance(item, PreviewReset) for item in watcher.items) == 1
        await check(scene, chat)


async def test_edit_in_the_middle_of_a_tool(place: Place) -> None:
    door = Door("door")
    script = [Answer([ToolCall("door", {"to": "a"})]), Answer("Without it.")]
    async with stage(place, script, tools=[door.tool()]) as scene:
        chat = await scene.start("Go")
        await door.until_begun()
        state = await scene.engine.state(chat)
        target = state.need_transcript("test").messages[0].id
        await scene.engine.edit_message(chat, target, "Stay")
        state = await scene.settled(chat)
        assert not door.opened.is_set()
        assert texts(state) == ["Without it."]
        assert outputs(state) == []
        await check(scene, chat)


async def test_edit_of_an_older_message_drops_the_queue(place: Place) -> None:
    gate = Gate()
    script = [Answer("First."), Answer("Second.", gate=gate), Answer("Anew.")]
    async with stage(place, script) as scene:
        chat = await scene.start("one")
        state = await scene.settled(chat)
        target = state.need_transcript("test").messages[0].id
        await scene.engine.send_message(chat, "two")
        await gate.reached()
        await scene.engine.send_message(chat, "three")
        await scene.engine.edit_message(chat, target, "uno")
        state = await scene.settled(chat)
        gate.release()
        assert texts(state, "user") == ["uno"]
        assert texts(state) == ["Anew."]
        assert state.control.queue == ()
        await check(scene, chat)
