"""The queue: messages that wait their turn."""

from chatfold.testing.servers import Answer, Gate
from tests.e2e.checks import check
from tests.e2e.kit import Place, stage, texts


async def test_queued_messages_follow_in_order(place: Place) -> None:
    gate = Gate()
    script = [Answer("One.", gate=gate, gate_after=0), Answer("Two."), Answer("Three.")]
    async with stage(place, script) as scene:
        chat = await scene.start("one")
        await gate.reached()
        second = await scene.engine.send_message(chat, "two")
        assert second.state == "R1"
        third = await scene.engine.send_message(chat, "drei")
        await scene.engine.edit_queued(chat, third.queued[0], "three")
        dropped = await scene.engine.send_message(chat, "dropped")
        await scene.engine.reorder_queue(chat, [dropped.queued[0], second.queued[0], third.queued[0]])
        await scene.engine.delete_queued(chat, dropped.queued[0])
        gate.release()
        state = await scene.settled(chat)
        assert texts(state, "user") == ["one", "two", "three"]
        assert texts(state) == ["One.", "Two.", "Three."]
        assert [request.user_texts for request in scene.server.requests] == [
            ("one",),
            ("one", "two"),
            ("one", "two", "three"),
        ]
        await check(scene, chat)
