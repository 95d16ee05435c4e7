"""Opening and closing of back ends: a store that is entered more than once is closed by the last exit.

So a store can be given, open, to an engine or to two of them, and each may enter it as its own.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import Self

from store.errors import StoreUnavailable


def not_open() -> StoreUnavailable:
    """Return the error of a call to a store that was not entered, or was left."""
    return StoreUnavailable("the store is not open; enter it, or its engine, with `async with`")


class Reentrant(ABC):
    """A context manager that opens at the first entry and closes at the last exit; then it can be entered again."""

    def __init__(self) -> None:
        self._entries = 0
        self._gate = asyncio.Lock()

    async def __aenter__(self) -> Self:
        async with self._gate:
            if self._entries == 0:
                await self._open()
            self._entries += 1
        return self

    async def __aexit__(self, *exc: object) -> None:
        async with self._gate:
            if self._entries == 0:
                return
            self._entries -= 1
            if self._entries == 0:
                await self._close()

    @abstractmethod
    async def _open(self) -> None:
        """Open; called while closed."""

    @abstractmethod
    async def _close(self) -> None:
        """Close; called while open."""
