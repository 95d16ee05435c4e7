"""What becomes of chats of which there are debug records, whoever does it: edits, erasures and deletions.

Owns how these are learned of: by hints of all processes, and by looking at all such chats again now and then. A chat's
log says what was edited and erased, its tombstone that it was deleted. What is done then is told by the caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from events.envelope import Recorded
from events.errors import EventsError
from events.ids import ChatId
from events.vocabulary import ContentErased, MessageEdited
from store.contract import Hint, Store
from store.errors import StoreError
from store.loading import read_recorded
from store.log import get_logger

_log: Final = get_logger(__name__)

SWEEP: Final = 300.0
"""Seconds after which all chats of which there are records are looked at again: hints are best effort."""

PAUSE: Final = 5.0
"""Seconds before a store that could not be read is asked again."""

Forget: TypeAlias = Callable[[str, int | None, int | None], bool]
"""Drops records of a chat: of which histories on, and below which version. Whether that was taken over."""


def forgettable(recorded: Iterable[Recorded]) -> Iterator[tuple[int | None, int]]:
    """Yield what events say is to be forgotten: since which history (None: any), and below which version."""
    for item in recorded:
        event = item.event
        if isinstance(event, MessageEdited) and event.removed_from is not None:
            yield int(event.removed_from.partition(".")[0]), item.version
        elif isinstance(event, ContentErased):
            yield None, item.version  # records hold what is to be gone


class Following:
    """Follows the chats of which there are records.

    Args:
        forget: Is told what is to be forgotten.
        sweep: Seconds after which all are looked at again.
    """

    def __init__(self, forget: Forget, *, sweep: float = SWEEP) -> None:
        self._forget = forget
        self._sweep = sweep
        self._looked: dict[str, int] = {}
        self._unread: set[str] = set()

    def note(self, chat: str, version: int) -> None:
        """Note that there is a record of a chat at a version: what its log says from there on is still to be seen."""
        known = self._looked.get(chat)
        if known is None or version < known:
            self._looked[chat] = version

    def drop(self, chat: str) -> None:
        """Note that there is no record of a chat any more."""
        self._looked.pop(chat, None)

    async def run(self, store: Store, kept: Callable[[], Awaitable[Mapping[str, int]]]) -> None:
        """Follow the chats of a store until cancelled.

        Args:
            store: It is open.
            kept: Gives the chats of which there are records from earlier, with the lowest version of these.
        """
        for chat, version in (await kept()).items():
            self.note(chat, version)
        while True:
            try:
                async with store.hints() as hints:
                    for chat in tuple(self._looked):  # once hints are listened to: nothing is missed in between
                        await self._look(store, ChatId(chat))
                    await self._follow(store, hints)
            except StoreError as error:
                _log.info("debug_records_not_followed", error=str(error))
                await asyncio.sleep(PAUSE)

    async def _follow(self, store: Store, hints: AsyncIterator[Hint]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._sweep):
                async for hint in hints:
                    if hint.version > self._looked.get(hint.chat, hint.version):
                        await self._look(store, hint.chat)

    async def _look(self, store: Store, chat: ChatId) -> None:
        """Read what a chat's log says behind what was looked at; where the log is gone, whether it was deleted."""
        after = self._looked.get(chat)
        if after is None:
            return
        try:
            recorded = await read_recorded(store, chat, after=after, content=False)
        except EventsError as error:
            if chat not in self._unread:
                self._unread.add(chat)
                _log.warning("debug_records_not_followed", chat=chat, error=str(error))
            return
        if not recorded:
            # Neither a chat nor a tombstone: it is another store's, whose records are kept in the same place.
            if await store.tombstone(chat) is not None and self._forget(chat, None, None):
                self.drop(chat)
            return
        taken = [self._forget(chat, since, before) for since, before in forgettable(recorded)]
        if all(taken) and self._looked.get(chat) == after:  # else one was made of an older version meanwhile
            self._looked[chat] = recorded[-1].version
