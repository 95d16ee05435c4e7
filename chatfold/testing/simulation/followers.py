"""Consumers of events: each committed event is told once, in order, wherever the consumer asks next."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Any, Final

from chatfold.engine import Engine
from chatfold.stream import EventItem
from chatfold.testing.simulation.ledger import LedgerStore
from chatfold.testing.simulation.process import ProcessDied
from chatfold.testing.simulation.users import Town
from chatstate.errors import ChatNotFound
from events.ids import ChatId
from store.errors import StoreError

_CATCHING_UP: Final = 5.0


class Follower:
    """A consumer that keeps its cursor with what it read.

    Args:
        town: Where processes are.
        database: What it must have seen at the end.
        chat: The chat whose stream it reads; None for the feed of all chats.
    """

    def __init__(self, town: Town, database: LedgerStore, chat: ChatId | None = None) -> None:
        self._town = town
        self._database = database
        self._chat = chat
        self._cursor: str | None = None
        self._seen: dict[str, list[int]] = {}

    async def follow(self) -> None:
        """Read on and on, at another process when one dies."""
        while True:
            doors = self._town.open()
            if doors:
                with suppress(ProcessDied, StoreError, ChatNotFound):
                    await self._town.random.choice(doors).call(self._read)
            await asyncio.sleep(0.5)

    async def catch_up(self, task: asyncio.Task[None]) -> None:
        """Give it time to see all there is, then end it."""
        await asyncio.sleep(_CATCHING_UP)
        task.cancel()
        await asyncio.wait([task])

    def problems(self) -> list[str]:
        """Return what it saw twice, out of order, or not at all (deleted chats aside)."""
        found = []
        what = "a reader of a chat's stream" if self._chat is not None else "a consumer of the feed"
        for header in self._database.headers():
            seen = self._seen.get(header.chat, [])
            if self._chat in {None, header.chat} and seen != list(range(1, header.version + 1)):
                found.append(f"{what} saw {seen} of {header.chat}, which has {header.version} events")
        return found

    async def _read(self, engine: Engine) -> Any:
        if self._chat is None:
            async with aclosing(engine.feed(self._cursor)) as items:
                async for item in items:
                    self._take(item.cursor, item.chat, item.recorded.version)
            return
        async with aclosing(engine.stream(self._chat, self._cursor)) as shown:
            async for each in shown:
                if isinstance(each, EventItem):
                    self._take(each.cursor, self._chat, each.recorded.version)
                else:
                    self._cursor = each.cursor

    def _take(self, cursor: str, chat: str, version: int) -> None:
        self._cursor = cursor
        self._seen.setdefault(chat, []).append(version)
