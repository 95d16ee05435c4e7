"""Going through all chats of a store: a page of ids at a time, some chats at once, results in the order of ids."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TypeVar

from chatstate.errors import ChatNotFound
from events.ids import ChatId
from store.contract import Store

T = TypeVar("T")


async def each_chat(
    store: Store, work: Callable[[ChatId], Awaitable[T]], *, at_once: int = 4
) -> AsyncGenerator[T, None]:
    """Do ``work`` for every chat and yield what it gives, in the order of ids.

    Args:
        store: Where the chats are kept.
        work: What to do; of a chat that was deleted meanwhile (``ChatNotFound``) nothing is said.
        at_once: Chats that are worked on together. Where whoever takes the results is slow, no more are begun.

    Raises:
        StoreUnavailable: The ids cannot be read. What ``work`` raises comes through.
    """

    async def one(chat: ChatId) -> T | None:
        try:
            return await work(chat)
        except ChatNotFound:
            return None

    under_way: deque[asyncio.Task[T | None]] = deque()
    try:
        async for chat in chat_ids(store):
            under_way.append(asyncio.create_task(one(chat)))
            if len(under_way) >= max(at_once, 1):
                result = await under_way.popleft()
                if result is not None:
                    yield result
        while under_way:
            result = await under_way.popleft()
            if result is not None:
                yield result
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)


async def count_chats(store: Store) -> int:
    """Return how many chats there are, to say how far a sweep is; reads ids alone."""
    return sum([1 async for _ in chat_ids(store)])


async def chat_ids(store: Store) -> AsyncIterator[ChatId]:
    """Yield the ids of all chats in their order; one that is made meanwhile may be among them."""
    last: ChatId | None = None
    while page := await store.list_ids(after=last):
        for chat in page:
            yield chat
        last = page[-1]
