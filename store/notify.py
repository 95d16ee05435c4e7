"""Hints within one process: who listens, and what waits for them.

Owns subscriptions and the bus that reaches them. How hints cross processes is each back end's matter.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Self

from events.ids import ChatId
from store.contract import Hint


def newer(known: Hint | None, hint: Hint) -> Hint:
    """Return the one of two hints of a chat that says more: the later version, or of the same version the due one."""
    if known is None or known.version < hint.version:
        return hint
    if known.version == hint.version and hint.due:
        return hint
    return known


class Subscription:
    """The hints that wait for one subscriber: at most one for each chat, always the newest.

    A subscriber that is slow makes nobody wait. Hints may be offered from any thread; they are read on the event loop
    that the subscription was made on, by one reader.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[ChatId, Hint] = {}
        self._lock = threading.Lock()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def offer(self, hints: Iterable[Hint]) -> None:
        """Add hints, each in the place of an older one of its chat."""
        with self._lock:
            for hint in hints:
                self._waiting[hint.chat] = newer(self._waiting.get(hint.chat), hint)
        self._wake()

    def close(self) -> None:
        """End the iteration once the hints that wait are read."""
        self._closed = True
        self._wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Hint:
        while True:
            with self._lock:
                if self._waiting:
                    return self._waiting.pop(next(iter(self._waiting)))
            if self._closed:
                raise StopAsyncIteration
            # What is offered from another thread meanwhile wakes in a turn of the loop that is still to come.
            self._waiter = self._loop.create_future()
            await self._waiter

    def _wake(self) -> None:
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._wake_here()
            return
        # A closed loop refuses; its reader is gone with it, and the write that the hint tells of is committed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake_here)

    def _wake_here(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Bus:
    """The subscriptions of one database in this process."""

    def __init__(self) -> None:
        self._to_all: set[Subscription] = set()
        self._to_one: dict[ChatId, set[Subscription]] = {}
        self._lock = threading.Lock()

    def publish(self, hints: Iterable[Hint]) -> None:
        """Give hints to all who subscribed to them; never waits for one."""
        given = tuple(hints)
        with self._lock:
            told = [(subscription, given) for subscription in self._to_all]
            for hint in given:
                if (subscriptions := self._to_one.get(hint.chat)) is not None:
                    told.extend((subscription, (hint,)) for subscription in subscriptions)
        for subscription, what in told:
            subscription.offer(what)

    @asynccontextmanager
    async def subscribe(self, chat: ChatId | None = None) -> AsyncIterator[Subscription]:
        """Subscribe to the hints that are published while the context is entered: all, or those of one chat."""
        subscription = Subscription()
        with self._lock:
            (self._to_all if chat is None else self._to_one.setdefault(chat, set())).add(subscription)
        try:
            yield subscription
        finally:
            with self._lock:
                self._leave(subscription, chat)
            subscription.close()

    def _leave(self, subscription: Subscription, chat: ChatId | None) -> None:
        if chat is None:
            self._to_all.discard(subscription)
            return
        subscriptions = self._to_one[chat]
        subscriptions.discard(subscription)
        if not subscriptions:
            del self._to_one[chat]
