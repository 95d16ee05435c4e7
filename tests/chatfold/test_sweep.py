"""A sweep over all chats goes in order, has a few under way at once, and passes by what was deleted meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import pytest

from chatfold.sweep import count_chats, each_chat
from chatstate.errors import ChatNotFound
from events.ids import ChatId
from store.errors import StoreUnavailable
from store.memory import MemoryStore
from tests.chatstate import build as b
from tests.chatstate.chat import Chat
from tests.store.long_chats import put

CHATS: Final = [ChatId(f"chat-{place:02}") for place in range(12)]


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    chat = Chat()
    chat.do(b.create())
    async with MemoryStore() as opened:
        for each in reversed(CHATS):
            await put(opened, chat, each)
        yield opened


class Work:
    """Work on chats, the first one of which takes longest."""

    def __init__(self) -> None:
        self.under_way: set[ChatId] = set()
        self.most = 0
        self.ended: list[ChatId] = []

    async def __call__(self, chat: ChatId) -> ChatId:
        self.under_way.add(chat)
        self.most = max(self.most, len(self.under_way))
        try:
            for _ in range(20 if chat == CHATS[0] else 2):
                await asyncio.sleep(0)
        finally:
            self.under_way.discard(chat)
        if chat == CHATS[5]:
            raise ChatNotFound("verify", "N", "it was deleted")
        self.ended.append(chat)
        return chat


async def test_results_come_in_order_and_few_are_under_way(store: MemoryStore) -> None:
    work = Work()
    assert [chat async for chat in each_chat(store, work, at_once=3)] == [*CHATS[:5], *CHATS[6:]]
    assert work.most == 3
    assert work.ended[0] != CHATS[0]
    assert await count_chats(store) == len(CHATS)


async def test_no_more_are_begun_than_are_asked_for(store: MemoryStore) -> None:
    work = Work()
    async with aclosing(each_chat(store, work, at_once=2)) as results:
        assert await anext(results) == CHATS[0]
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(work.ended) == 2
    assert work.under_way == set()


async def test_an_error_ends_it_and_leaves_nothing_under_way(store: MemoryStore) -> None:
    under_way = Work()

    async def work(chat: ChatId) -> ChatId:
        if chat == CHATS[2]:
            raise StoreUnavailable("away")
        return await under_way(chat)

    with pytest.raises(StoreUnavailable):
        _ = [chat async for chat in each_chat(store, work, at_once=4)]
    assert under_way.under_way == set()
