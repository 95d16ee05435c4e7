"""Following a live chat: what its log got since, read from the store and put behind what is known. Never writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chatfold.stepper.longlog import LongLog
from chatfold.transfer import referred_blobs
from events.envelope import StoredEvent
from events.ids import ChatId
from store import open_store
from store.contract import Store
from store.loading import PAGE

EVERY_SECONDS: Final = 0.25
"""Seconds between two looks at the store."""


class Following:
    """A chat whose log is read on.

    Args:
        store: Where the chat is.
        log: What is known of its log; it grows in place.
    """

    def __init__(self, store: Store, log: LongLog) -> None:
        if not isinstance(log.events, list) or not isinstance(log.blobs, dict):
            raise TypeError("only a chat in a store can be followed: a file does not grow")
        self._store: Final = store
        self._chat: Final = ChatId(log.chat)
        self._events: Final[list[StoredEvent]] = log.events
        self._blobs: Final[dict[str, bytes]] = log.blobs

    async def more(self) -> int:
        """Read what came since, and return how many events.

        Raises:
            StoreError: The store cannot be read.
        """
        count = 0
        while page := await self._store.read_events(self._chat, after=len(self._events), limit=PAGE):
            # Blobs first: whoever looks at an event finds its content.
            self._blobs.update(await self._store.get_blobs(referred_blobs(page)))
            self._events.extend(page)
            count += len(page)
        return count


@asynccontextmanager
async def following(url: str, log: LongLog) -> AsyncIterator[Following]:
    """Open the store of a chat, to follow it.

    Raises:
        StoreError: The store cannot be opened.
    """
    async with open_store(url) as store:
        yield Following(store, log)
