"""Consumers of the feed of all chats' events: each event is told once, in order, wherever the consumer asks next."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Any, Final

from chatfold.engine import Engine
from chatfold.testing.simulation.ledger import LedgerStore
from chatfold.testing.simulation.process import ProcessDied
from chatfold.testing.simulation.users import Town
from store.errors import StoreError

_CATCHING_UP: Final = 5.0


class Follower:
    """A consumer that keeps its cursor with what it read.

    Args:
        town: Where processes are.
        database: What it must have seen at the end.
    """

    def __init__(self, town: Town, database: LedgerStore) -> None:
        self._town = town
        self._database = database
        self._cursor: str | None = None
        self._seen: list[tuple[str, int]] = []

    async def follow(self) -> None:
        """Read on and on, at another process when one dies."""
        while True:
            doors = self._town.open()
            if doors:
                with suppress(ProcessDied, StoreError):
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
        by_chat: dict[str, list[int]] = {}
        for chat, version in self._seen:
            by_chat.setdefault(chat, []).append(version)
        for header in self._database.headers():
            seen = by_chat.get(header.chat, [])
            if seen != list(range(1, header.version + 1)):
                found.append(f"a consumer of the feed saw {seen} of {header.chat}, which has {header.version} events")
        return found

    async def _read(self, engine: Engine) -> Any:
        async with aclosing(engine.feed(self._cursor)) as items:
            async for item in items:
                self._cursor = item.cursor
                self._seen.append((item.chat, item.recorded.version))
