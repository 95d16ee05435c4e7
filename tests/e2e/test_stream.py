"""The stream of a chat that is being answered: joined late, left and taken up again."""

import asyncio
from contextlib import aclosing

import pytest

from chatfold.stream import EventItem, PartItem
from chatfold.testing.servers import Answer, Gate
from events.vocabulary import StepCommitted
from generation.parts import EpisodeKey, LiveText, PartBuffer, Subscription
from tests.e2e.checks import check
from tests.e2e.kit import PATIENCE, Place, Scene, stage

LONG = "An answer in several pieces, and with an end."


async def _text_until_commit(scene: Scene, chat: str, cursor: str | None) -> str:
    text = ""
    async with asyncio.timeout(PATIENCE), aclosing(scene.engine.stream(chat, cursor)) as stream:
        async for item in stream:
            match item:
                case PartItem(part=LiveText() as part):
                    text += part.text
                case EventItem() if isinstance(item.recorded.event, StepCommitted):
                    return text
                case _:
                    continue
    raise AssertionError


async def test_stream_joined_late_and_taken_up_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate()
    joined: set[asyncio.Task[object] | None] = set()
    subscribe = PartBuffer.subscribe

    def noticed(buffer: PartBuffer, key: EpisodeKey, *, after: int = 0) -> Subscription:
        joined.add(asyncio.current_task())
        return subscribe(buffer, key, after=after)

    async with stage(place, [Answer(LONG, gate=gate, gate_after=3)]) as scene:
        chat = await scene.start("Hello")
        await gate.reached()
        watcher = scene.watchers[chat]
        await watcher.until(lambda items: sum(isinstance(item, PartItem) for item in items) == 3)
        parts = [item for item in watcher.items if isinstance(item, PartItem)]
        cursors = [None, watcher.items[0].cursor, parts[0].cursor, parts[2].cursor]
        monkeypatch.setattr(PartBuffer, "subscribe", noticed)
        readers = [asyncio.create_task(_text_until_commit(scene, chat, cursor)) for cursor in cursors]
        # A reader that comes when the answer is committed sees the commit alone: all four must be there before.
        async with asyncio.timeout(PATIENCE):
            while len(joined) < len(readers):  # noqa: ASYNC110 - the buffer has no event for a reader that comes
                await asyncio.sleep(0.001)
        gate.release()
        assert await asyncio.gather(*readers) == [LONG, LONG, LONG[8:], LONG[24:]]
        await scene.settled(chat)
        await check(scene, chat)
