"""Refused commands, noted for people who ask why a chat does not move: the newest of each chat, best effort.

A refusal changes nothing and is no event, so it is kept beside the log. Many of them cost one write about each second.
"""

from __future__ import annotations

import asyncio
from typing import Final

from chatstate.errors import Refusal
from events.ids import ChatId
from events.records import Actor
from store.contract import Store
from store.errors import StoreError
from store.log import get_logger
from store.notes import RefusalNote

_log = get_logger(__name__)

_DELAY: Final = 1.0
"""Seconds that refusals are gathered before they are written."""

_MOST: Final = 1000
"""Chats whose refusals wait at most; further ones are dropped."""


class Refusals:
    """Gathers refusals and writes them to a store.

    Args:
        store: Where they are kept.
        delay: Seconds that they are gathered.
    """

    def __init__(self, store: Store, delay: float = _DELAY) -> None:
        self._store = store
        self._delay = delay
        self._waiting: dict[ChatId, RefusalNote] = {}
        self._writer: asyncio.Task[None] | None = None

    def note(self, chat: ChatId, refusal: Refusal, actor: Actor, now: int) -> None:
        """Take note of a refused command; ``now`` is database time."""
        if chat not in self._waiting and len(self._waiting) >= _MOST:
            return
        self._waiting[chat] = RefusalNote(
            chat=chat,
            at=now,
            trigger=refusal.trigger,
            code=refusal.code,
            state=str(refusal.state),
            reason=refusal.reason,
            actor=actor.kind if actor.id is None else f"{actor.kind}:{actor.id}",
        )
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_later(), name="chatfold-refusals")

    async def close(self) -> None:
        """Write what waits."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        await self._write()

    async def _write_later(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._delay)
            await self._write()

    async def _write(self) -> None:
        notes, self._waiting = tuple(self._waiting.values()), {}
        if not notes:
            return
        try:
            await self._store.note_refusals(notes)
        except StoreError as error:
            _log.warning("refusals_not_noted", count=len(notes), error=str(error))
