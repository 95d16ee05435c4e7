"""A guard against silence: one timer for a whole stream, whatever the number of its parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class SilenceGuard:
    """Cancels the task that made it when nothing was heard for too long. ``end`` it.

    Moving the deadline costs an assignment: the timer looks at it when it fires, and goes on waiting if it moved.

    Args:
        limit: Seconds until something must be heard.
        patience: Seconds that the task has to end after it was cancelled.
        hangs: Called when it has neither ended nor heard anything by then.
    """

    __slots__ = ("_deadline", "_hangs", "_loop", "_patience", "_task", "_timer", "expired", "limit")

    def __init__(self, limit: float, patience: float, hangs: Callable[[], object]) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a guard is made within a task")
        self.limit = limit
        self.expired = False
        self._patience = patience
        self._hangs = hangs
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + limit
        self._timer = self._loop.call_at(self._deadline, self._look)

    def heard(self, limit: float) -> None:
        """Say that something came; the next must come within ``limit`` seconds."""
        early = self.expired or limit < self.limit
        if self.expired:
            # The stream took the cancellation for its own matter, and goes on in spite of it.
            self.expired = False
            self._task.uncancel()
        self.limit = limit
        self._deadline = self._loop.time() + limit
        if early:
            self._timer.cancel()
            self._timer = self._loop.call_at(self._deadline, self._look)

    def end(self) -> None:
        """Guard no longer; a cancellation of its own is taken back."""
        self._timer.cancel()
        if self.expired:
            self._task.uncancel()

    def _look(self) -> None:
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._look)
        else:
            self.expired = True
            self._task.cancel()
            self._timer = self._loop.call_later(self._patience, self._hangs)
