"""A chat of a store as the debugger reads it: what is on the screen first, the rest meanwhile, and what came since.

Never writes. Events that are not read yet are places in the log that say so when they are looked at.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from chatfold.stepper.longlog import LongLog, StoredEvents
from chatfold.transfer import referred_blobs
from events.ids import ChatId
from store.contract import Store
from store.loading import PAGE, must_be_there

EVERY_SECONDS: Final = 0.25
"""Seconds between two looks at the store."""


class StoredChat:
    """A chat whose log is read bit by bit.

    Args:
        store: Where the chat is.
        chat: Its id.
        count: How many events it has.

    Attributes:
        chat: Its id.
        log: What is known of its log; it grows in place.
    """

    def __init__(self, store: Store, chat: ChatId, count: int) -> None:
        self._store: Final = store
        self.chat: Final = chat
        self._events: Final = StoredEvents(count)
        self._blobs: Final[dict[str, bytes]] = {}
        self.log: Final = LongLog(name=chat, chat=chat, events=self._events, blobs=self._blobs)

    @classmethod
    async def opened(cls, store: Store, chat: str, *, near: int | None = None) -> StoredChat:
        """Look a chat up, and read the events around a version: enough for a first screen.

        Args:
            store: Where the chat is.
            chat: Its id.
            near: The version; None for the end.

        Raises:
            ChatNotFound: There is no such chat.
            StoreError: The store cannot be read.
        """
        header = must_be_there(await store.load_header(ChatId(chat)), "step", chat).header
        stored = cls(store, header.chat, header.version)
        middle = header.version if near is None else near
        await stored._read(max(0, min(middle, header.version) - PAGE // 2))
        return stored

    async def rest(self) -> AsyncIterator[int]:
        """Read what is not read yet, from the start on; yield the version up to which all is, page by page.

        Raises:
            ChatNotFound: The chat was deleted meanwhile.
            StoreError: The store cannot be read.
        """
        while (after := self._events.read_to) < len(self._events):
            if not await self._read(after):
                must_be_there(None, "step", self.chat)
            yield self._events.read_to

    async def more(self) -> int:
        """Read what came since, and return how many events.

        Raises:
            StoreError: The store cannot be read.
        """
        count = 0
        while found := await self._read(len(self._events)):
            count += found
        return count

    async def _read(self, after: int) -> int:
        page = await self._store.read_events(self.chat, after=after, limit=PAGE)
        # Blobs first: whoever looks at an event finds its content.
        self._blobs.update(await self._store.get_blobs(referred_blobs(page)))
        self._events.put(after, page)
        return len(page)
