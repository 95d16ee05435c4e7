"""What was said and never became a message of history: an erasure of all messages leaves nothing of it anywhere."""

from __future__ import annotations

import asyncio
import signal
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from chatfold.testing.servers import Answer, Fail, Gate, Reply, ToolCall
from events.codec import decode
from events.effects import Effects
from events.ids import ChatId, MessageId, message_id
from events.vocabulary import CompactionRequested
from store.loading import read_recorded
from tests.e2e.checks import blobs_of, check, stored_log
from tests.e2e.kit import PATIENCE, Place, Scene, stage, texts
from tests.e2e.test_takeover import QUICK, worker_process
from tests.e2e.tools import Door

SECRET = "555-1234"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory://"
    found: str = request.getfixturevalue("shared_database") if request.param == "postgres" else ""
    return found or f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture
def place(url: str) -> Place:
    return Place(provider="anthropic", url=url, agent=f"agent-{uuid.uuid4().hex}")


async def ids_of(scene: Scene, chat: str) -> list[MessageId]:
    """All messages that the chat has or had."""
    found = []
    for recorded in await read_recorded(scene.store, ChatId(chat)):
        event = recorded.event
        if isinstance(event, Effects):
            many = len(event.answers) + len(event.added) + len(event.queued)
            found += [message_id(recorded.version, place) for place in range(many)]
    return found


async def kept(scene: Scene, chat: str) -> str:
    """All that the store has of the chat."""
    store, known = scene.store, ChatId(chat)
    log = await stored_log(store, chat)
    pieces = [repr((event.facts, event.content)) for event in log]
    pieces += [repr(await blobs_of(store, log)), repr(await store.read_partials(known))]
    pieces += [repr(await store.read_segments(known)), repr(await store.load_header(known))]
    pieces += [repr(await scene.engine.state(chat)), repr(decode(log[-1]))]
    return "\n".join(pieces)


async def erase_all(scene: Scene, chat: str) -> None:
    assert SECRET in await kept(scene, chat)
    await scene.engine.erase(chat, await ids_of(scene, chat))
    assert SECRET not in await kept(scene, chat)


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)  # memory goes with its process
async def test_a_compaction_whose_worker_was_killed(place: Place) -> None:
    gate = Gate()
    script = [Answer("Noted."), Answer(f"They gave {SECRET}.", gate=gate, gate_after=2), Answer("They talked.")]
    async with (
        stage(place, script, worker=False, settings=QUICK) as scene,
        worker_process(scene, stop=False) as first,
    ):
        chat = await scene.start(f"My number is {SECRET}.")
        await scene.settled(chat)
        await scene.engine.compact(chat, hint=f"Keep {SECRET}.")
        await gate.reached(PATIENCE)
        assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        await erase_all(scene, chat)
        gate.release()
        async with worker_process(scene, stop=False):
            await scene.settled(chat)
        assert SECRET not in await kept(scene, chat)
        await check(scene, chat)


@pytest.mark.parametrize("how", ["fails", "is interrupted"])
async def test_a_compaction_that_came_to_nothing(place: Place, how: str) -> None:
    gate = Gate()
    summary: Reply = Fail(400) if how == "fails" else Answer("They talked.", gate=gate, gate_after=2)
    async with stage(place, [Answer("Noted."), summary, Answer("Well.")]) as scene:
        chat = await scene.start(f"My number is {SECRET}.")
        await scene.settled(chat)
        await scene.engine.compact(chat, hint=f"Keep {SECRET}.")
        if how == "fails":
            await scene.settled(chat, "error")
        else:
            await gate.reached(PATIENCE)
            await scene.engine.interrupt(chat)
            await scene.settled(chat)
            gate.release()
        await erase_all(scene, chat)
        await check(scene, chat)


async def test_what_edits_and_undone_compactions_took_out_of_history(place: Place) -> None:
    """A recorded result that an edit overtook, the messages that it removed, and a summary that was taken back."""
    door, other = Door("door"), Door("other")
    script: Sequence[Reply] = [
        Answer([ToolCall("door", {"to": SECRET}), ToolCall("other", {"to": "b"})]),
        Answer("Noted."),
        Answer(f"They gave {SECRET}."),
    ]
    async with stage(place, script, tools=[door.tool(), other.tool()], settings=QUICK) as scene:
        chat = await scene.start(f"My number is {SECRET}.")
        async with asyncio.timeout(PATIENCE):
            await other.begun.wait()
        door.opened.set()
        await scene.until(chat, lambda control: any(call.recorded for call in control.indexes.open_calls))
        said = next(item.id for item in (await scene.engine.state(chat)).messages if item.message.role == "user")
        await scene.engine.edit_message(chat, said, "I have no number.")
        await scene.settled(chat)
        await scene.engine.compact(chat, hint=f"Drop {SECRET}.")
        await scene.settled(chat)
        await scene.engine.uncompact(chat)
        state = await scene.engine.state(chat)
        assert texts(state) == ["Noted."]
        assert any(isinstance(each.event, CompactionRequested) for each in await scene.engine.events(chat))
        await erase_all(scene, chat)
        await check(scene, chat)
