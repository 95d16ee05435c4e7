"""The store of a rerun: in memory, at the log's times, and told who is alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from events.ids import ChatId, WorkerId
from store.memory import MemoryStore

_FOR_EVER: Final = 1 << 62
"""Microseconds that a lease lasts: it ends when the log says so."""


class RerunStore(MemoryStore):
    """A store for one chat.

    Args:
        clock: The log's time, in microseconds UTC.
        level: The release level up to which events are written.
    """

    def __init__(self, clock: Callable[[], int], level: int) -> None:
        super().__init__(clock=clock)
        self.write_level = level

    async def begins(self, worker: WorkerId) -> None:
        """Take a worker for alive."""
        await self.heartbeat(worker, _FOR_EVER, start=True)

    async def holder(self, chat: ChatId) -> WorkerId | None:
        """Return who holds a chat."""
        found = await self.load_header(chat)
        return None if found is None else found.header.holder

    def import_as_foreign(self, chat: ChatId) -> None:
        """Let a chat be one that was imported as it stands: what was done before was done elsewhere."""
        kept = self._chats[chat]
        kept.header = replace(kept.header, foreign=True)
