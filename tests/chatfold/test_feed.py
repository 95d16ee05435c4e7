"""The feed as consumers see it: decoded events of all chats behind a cursor."""

from __future__ import annotations

from contextlib import aclosing
from itertools import groupby
from pathlib import Path

import pytest

from chatfold.engine import Engine
from chatfold.feed import FeedItem
from events.errors import InvalidValue
from events.parts import TextPart
from events.vocabulary import ChatCreated
from store.errors import FeedEventUnreadable
from tests.chatfold.test_tampered import change


async def taken(engine: Engine, count: int, after: str | None = None) -> list[FeedItem]:
    items: list[FeedItem] = []
    async with aclosing(engine.feed(after)) as feed:
        async for item in feed:
            items.append(item)
            if len(items) == count:
                break
    return items


async def test_events_of_all_chats_come_once_and_in_order() -> None:
    async with Engine("memory://", worker=False) as engine:
        chats = [(await engine.create_chat("helper", "Hello")).chat for _ in range(3)]
        for chat in chats:
            await engine.send_message(chat, "More")
        items = await taken(engine, 6)
        assert [item.chat for item in items] == [*chats, *chats]
        for _, own in groupby(sorted(items, key=lambda item: item.chat), key=lambda item: item.chat):
            assert [item.recorded.version for item in own] == [1, 2]
        rest = await taken(engine, 4, items[1].cursor)
        assert rest == items[2:]


async def test_contents_come_with_their_events_large_ones_too() -> None:
    text = "long " * 20_000
    async with Engine("memory://", worker=False) as engine:
        await engine.create_chat("helper", text)
        (item,) = await taken(engine, 1)
    assert isinstance(item.recorded.event, ChatCreated)
    (part,) = item.recorded.event.added[0].parts
    assert isinstance(part, TextPart)
    assert part.text.text == text


async def test_a_consumer_may_begin_at_the_end() -> None:
    async with Engine("memory://", worker=False) as engine:
        await engine.create_chat("helper", "Hello")
        end = await engine.feed_end()
        chat = (await engine.create_chat("helper", "Hello")).chat
        (item,) = await taken(engine, 1, end)
    assert item.chat == chat


@pytest.mark.parametrize("cursor", ["", "1", "1-", "x-1", "1-2-3", f"{2**63}-1", "1-2\n"])
async def test_a_wrong_cursor_is_refused(cursor: str) -> None:
    async with Engine("memory://", worker=False) as engine:
        with pytest.raises(InvalidValue, match="after"):
            await taken(engine, 1, cursor)


@pytest.mark.parametrize("assignment", ["facts = 'x'", "type = 'nonsense'", "schema_number = 99", "content = 5"])
async def test_a_consumer_goes_on_behind_an_event_that_cannot_be_read(tmp_path: Path, assignment: str) -> None:
    async with Engine(f"sqlite:///{tmp_path / 'chats.db'}", worker=False) as engine:
        chat = (await engine.create_chat("helper", "Hello")).chat
        for _ in range(3):
            await engine.send_message(chat, "More")
        change(tmp_path / "chats.db", f"UPDATE chat_events SET {assignment} WHERE version = 2")
        items = await taken(engine, 1)
        with pytest.raises(FeedEventUnreadable, match=chat) as caught:
            await taken(engine, 2)
        rest = await taken(engine, 2, caught.value.cursor)
        assert [item.recorded.version for item in (*items, *rest)] == [1, 3, 4]
