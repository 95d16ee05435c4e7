"""Guards against silence: one timer for all that a process waits for, whatever the number of its parts.

What is guarded is called a stream here: a model's, or a context source, whose one part is its answer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import final


@final
class SilenceWatch:
    """Looks after the streams of an event loop, when the first of them may have been silent for too long.

    Its timer is left running where that stream was heard or ended meanwhile: it looks then, and goes on waiting. On
    another loop it begins anew: what was left on one that has ended can be neither cancelled nor waited for.
    """

    def __init__(self) -> None:
        self._guards: set[SilenceGuard] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    def guard(self, limit: float, patience: float, hangs: Callable[[], object]) -> SilenceGuard:
        """Return a guard of the task that runs; see there."""
        guard = SilenceGuard(self, limit, patience, hangs)
        self._guards.add(guard)
        return guard

    def leave(self, guard: SilenceGuard) -> None:
        """Guard no longer."""
        self._guards.discard(guard)

    def look_at(self, due: float) -> None:
        """Look not later than at ``due``, by the event loop's clock."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._guards.clear()
            self._loop, self._timer, self._due = loop, None, math.inf
        if due < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = loop.call_at(due, self._look)

    def _look(self) -> None:
        now, self._due = self._due, math.inf
        for guard in tuple(self._guards):
            if guard.deadline <= now:
                guard.expire()
        self.look_at(min((guard.deadline for guard in self._guards if not guard.expired), default=math.inf))


@final
class SilenceGuard:
    """Cancels the task that made it when nothing was heard for too long. ``end`` it.

    Moving the deadline costs an assignment: the watch looks at it when its timer fires.

    Args:
        watch: Looks at it.
        limit: Seconds until something must be heard.
        patience: Seconds that the task has to end after it was cancelled.
        hangs: Called when it has neither ended nor heard anything by then.

    Attributes:
        deadline: When something must have been heard, by the event loop's clock.
        expired: Whether the task was cancelled because of it.
    """

    __slots__ = ("_hanging", "_hangs", "_loop", "_patience", "_task", "_watch", "deadline", "expired", "limit")

    def __init__(self, watch: SilenceWatch, limit: float, patience: float, hangs: Callable[[], object]) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a guard is made within a task")
        self._loop = asyncio.get_running_loop()
        self._watch = watch
        self.limit = limit
        self.expired = False
        self._patience = patience
        self._hangs = hangs
        self._hanging: asyncio.TimerHandle | None = None
        self._task = task
        self.deadline = self._loop.time() + limit
        watch.look_at(self.deadline)

    def heard(self, limit: float) -> None:
        """Say that something came; the next must come within ``limit`` seconds."""
        early = limit < self.limit
        if self.expired:
            # The stream took the cancellation for its own matter, and goes on in spite of it.
            self._take_back()
            early = True
        self.limit = limit
        self.deadline = self._loop.time() + limit
        if early:
            self._watch.look_at(self.deadline)

    def end(self) -> None:
        """Guard no longer; a cancellation of its own is taken back."""
        self._watch.leave(self)
        if self.expired:
            self._take_back()

    def expire(self) -> None:
        """Cancel the task, once, and have it end within its patience."""
        if not self.expired:
            self.expired = True
            self._task.cancel()
            self._hanging = self._loop.call_later(self._patience, self._hangs)

    def _take_back(self) -> None:
        self.expired = False
        if self._hanging is not None:
            self._hanging.cancel()
        self._task.uncancel()
