"""Why work was cancelled: typed causes, and a scope that carries one to the work.

Owns the causes and how they reach a task. What each cause means for a chat (what is kept, which event follows) is the
runner's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from enum import IntEnum
from typing import Any, Final, Generic, TypeVar

from generation.errors import GenerationError
from store.log import get_logger

T = TypeVar("T")

_log: Final = get_logger(__name__)

_left_behind: Final[set[asyncio.Task[Any]]] = set()
"""Holds work that nobody waits for any more until it ends: the event loop itself keeps weak references only."""


class Cause(IntEnum):
    """Why work was cancelled. A greater cause outranks a lesser one that came before it.

    ``SHUTDOWN``: the worker stops; the chat is released. ``USER_INTERRUPT``: the user ends the turn; the partial answer
    is kept. ``HISTORY_CHANGED``: the work answers a history that is no more; what it made is dropped. ``LEASE_LOST``:
    another worker may hold the chat; stop at once and write nothing.
    """

    SHUTDOWN = 1
    USER_INTERRUPT = 2
    HISTORY_CHANGED = 3
    LEASE_LOST = 4


class WorkCancelled(GenerationError):
    """The work of a scope ended because the scope was cancelled; ``cause`` says why."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(f"cancelled: {cause.name.lower()}")
        self.cause = cause


class CancelScope(Generic[T]):
    """Runs one piece of work in a task of its own, so that it alone is cancelled, and for a cause.

    The work may read ``cause`` to learn why it is being cancelled, and may take time to end or even return a value:
    what was finished before a cancellation took hold counts.

    Args:
        patience: Seconds that the work gets to end after it was cancelled; None: as long as it takes. Work that goes on
            after that is left behind: whatever it still gives is dropped and logged.

    Attributes:
        left_with: Set by the work, and asked once if it is left behind: what it gives in place of a value, if anything.
    """

    __slots__ = ("_begun", "_cause", "_left", "_patience", "_task", "_waiting", "left_with")

    def __init__(self, patience: float | None = None) -> None:
        self.left_with: Callable[[], T | None] | None = None
        self._patience = patience
        self._waiting: asyncio.Future[None] | None = None
        self._task: asyncio.Task[T] | None = None
        self._cause: Cause | None = None
        self._left = False
        self._begun = False

    @property
    def begun(self) -> bool:
        """Whether the work was entered."""
        return self._begun

    @property
    def over(self) -> bool:
        """Whether nothing that the work still does counts: it was cancelled, or is left behind."""
        return self._left or self._cause is not None

    @property
    def cause(self) -> Cause | None:
        """The weightiest cause of those given so far; None while nobody cancelled."""
        return self._cause

    def cancel(self, cause: Cause) -> bool:
        """Cancel the work, or let it not begin.

        The work is interrupted by the first cause, and once more by ``LEASE_LOST``, so that a graceful end is cut
        short; other later causes are recorded where they outrank.

        Returns:
            Whether ``cause`` is now the scope's cause and was not before.
        """
        first = self._cause is None
        if self._cause is not None and cause <= self._cause:
            return False
        self._cause = cause
        if self._task is not None and (first or cause is Cause.LEASE_LOST):
            self._task.cancel(cause.name.lower())
            self._wake()
        return True

    def leave(self) -> None:
        """Wait no longer for work that nobody cancelled and that will not end; ``left_with`` says what it comes to."""
        self._left = True
        self._wake()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` and return what it gives. A scope runs once.

        If the caller's own task is cancelled, the work is too, and has ended when this returns.

        Raises:
            WorkCancelled: The scope was cancelled, and the work ended without a value, was left behind without one or
                had not begun. An error that the work ended with instead is its ``__cause__``.
            RuntimeError: The scope ran before, or the work was cancelled by something within itself or left behind
                without a value.
        """
        if self._task is not None:
            work.close()
            raise RuntimeError("a cancel scope runs once")
        if self._cause is not None:
            work.close()
            raise WorkCancelled(self._cause)
        loop = asyncio.get_running_loop()
        waiting = self._waiting = loop.create_future()  # before the task: some loops begin with it at once
        task = self._task = loop.create_task(self._telling(work))
        try:
            await waiting
            if not task.done() and not self._left:
                await asyncio.wait({task}, timeout=self._patience)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task}, timeout=self._patience)
            if not task.done():
                _leave_behind(task)
            elif not task.cancelled():
                task.exception()  # read, so that it is not reported as lost: the caller's cancellation outweighs it
            raise
        finally:
            if task.cancelled():
                work.close()  # it may not have begun
        return self._outcome(task) if task.done() else self._outcome_without(task)

    async def _telling(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work, and wake whoever waits as it ends: its task would tell a turn of the event loop later."""
        self._begun = True
        try:
            return await work
        finally:
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _outcome_without(self, task: asyncio.Task[T]) -> T:
        """Leave the work behind, and return what it leaves."""
        _leave_behind(task)
        value = self.left_with() if self.left_with is not None else None
        if value is not None:
            return value
        if self._cause is not None:
            raise WorkCancelled(self._cause)
        raise RuntimeError("the work was left behind")

    def _outcome(self, task: asyncio.Task[T]) -> T:
        if task.cancelled():
            if self._cause is None:
                raise RuntimeError("the work was cancelled from within")
            raise WorkCancelled(self._cause)
        error = task.exception()
        if error is None:
            return task.result()
        if self._cause is not None:
            raise WorkCancelled(self._cause) from error
        raise error


def _leave_behind(task: asyncio.Task[Any]) -> None:
    _log.warning("cancelled_work_left_behind", task=task.get_name())
    _left_behind.add(task)
    task.add_done_callback(_ended_late)


def _ended_late(task: asyncio.Task[Any]) -> None:
    _left_behind.discard(task)
    error = None if task.cancelled() else task.exception()
    _log.warning("late_outcome_dropped", task=task.get_name(), error=type(error).__name__ if error else None)
