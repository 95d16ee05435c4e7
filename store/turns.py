"""Whose turn it is to append to a chat: plans that lost against others are not overtaken by newcomers any more.

Nobody waits while nobody loses. Once a plan of this process met a conflict, the plans on that chat go one after the
other, in the order in which they came, until none waits. Against other processes a user's plan makes room: it waits a
little, at random, and longer each time it loses. A worker's does not: an answer was paid for, and its appends are few.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, Self

from events.ids import ChatId

_FIRST_WAIT: Final = 0.01
_LONGEST_WAIT: Final = 1.0
"""Seconds up to which a user's plan makes room after its first lost append, doubled each time, and at most."""


class _Line:
    __slots__ = ("_lock", "plans", "queued")

    def __init__(self) -> None:
        self.plans = self.queued = 0
        self._lock: asyncio.Lock | None = None

    @property
    def lock(self) -> asyncio.Lock:
        """The lock that plans wait at, made when one does: few do."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        return self._lock


class Turn:
    """One plan's place in the line of its chat, as a context manager."""

    __slots__ = ("_chat", "_line", "_lines", "_lost", "_patient", "_queued", "_wait")

    def __init__(
        self, lines: dict[ChatId, _Line], chat: ChatId, wait: Callable[[float], Awaitable[None]], *, patient: bool
    ) -> None:
        line = lines.get(chat)
        if line is None:
            line = lines[chat] = _Line()
        self._lines = lines
        self._chat = chat
        self._line = line
        self._wait = wait
        self._patient = patient
        self._lost = 0
        self._queued = False

    def __enter__(self) -> Self:
        self._line.plans += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._line.plans -= 1
        if not self._line.plans:
            del self._lines[self._chat]

    async def begin(self) -> bool:
        """Wait behind those who lost before, if there are any; returns whether there were."""
        if not self._line.queued:
            return False
        await self._queue()
        return True

    async def lost(self) -> None:
        """Say that an append met a conflict, and wait until it is this plan's turn again."""
        self._lost += 1
        if self._patient:
            others = self._queued
            self.end()
            if others:
                # Nobody of this process came between: another process writes as well.
                await self._wait(min(_FIRST_WAIT * 2.0 ** min(self._lost, 10), _LONGEST_WAIT))
        if not self._queued:
            await self._queue()

    def end(self) -> None:
        """Let the next one go."""
        if self._queued:
            self._queued = False
            self._line.queued -= 1
            self._line.lock.release()

    async def _queue(self) -> None:
        self._line.queued += 1
        try:
            await self._line.lock.acquire()
        except BaseException:
            self._line.queued -= 1
            raise
        self._queued = True


async def _at_most(seconds: float) -> None:
    await asyncio.sleep(random.uniform(0.0, seconds))  # noqa: S311 - nothing secret


class Turns:
    """The lines of all chats that plans of this process are at.

    Args:
        wait: Waits for at most the seconds that it is given; a random time, so that those who met part.
    """

    def __init__(self, wait: Callable[[float], Awaitable[None]] = _at_most) -> None:
        self._wait = wait
        self._lines: dict[ChatId, _Line] = {}

    def of(self, chat: ChatId, *, patient: bool) -> Turn:
        """Return a plan's turn at ``chat``, as a context manager; ``patient``: it makes room for other processes."""
        return Turn(self._lines, chat, self._wait, patient=patient)
