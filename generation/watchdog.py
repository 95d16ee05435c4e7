"""Watches from a thread of its own that the event loop turns, and says where it stands when it does not.

A function that blocks the loop stops everything of this process: streams, hints, and the heartbeat, so that other
workers take its chats over. Nothing on the loop can tell of it while it lasts. A loop whose process gets no processor
stands still as well, and no function is to blame: that is told in other words. Owns the thread and the log lines; what
a worker does about it is the lease's matter.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path, PurePath
from types import FrameType
from typing import Final

from store.log import get_logger

_log: Final = get_logger(__name__)

LOOKS: Final = 6
"""How often the thread looks within the time after which it speaks."""

DEEPEST: Final = 40
"""Frames of the stack that are told, the innermost ones."""

_TASKS: Final = Path("/proc/self/task")
"""Where Linux tells of the threads of a process."""


class ProcessorWaits:
    """How long the threads of this process have waited for a processor, as Linux tells it; elsewhere not at all.

    All of them count: one that waits may hold what another one needs to go on.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._waited = 0

    def __call__(self) -> float:
        """Return the seconds so far, of all threads together; it never falls."""
        found: dict[str, int] = {}
        with contextlib.suppress(OSError):
            for thread in _TASKS.iterdir():
                # One that cannot be read (it ends meanwhile, files have run out) stands where it stood.
                found[thread.name] = self._known.get(thread.name, 0)
                with contextlib.suppress(OSError, ValueError, IndexError):
                    found[thread.name] = int((thread / "schedstat").read_text().split()[1])
            self._waited += sum(max(waited - self._known.get(thread, 0), 0) for thread, waited in found.items())
            self._known = found
        return self._waited / 1e9


class LoopWatch:
    """Whether an event loop turns.

    Args:
        patience: Seconds without a turn after which the loop counts as blocked; those that its process waited for a
            processor do not count.
        clock: Seconds of a clock that never goes back.
        pause: Waits for so many seconds, or until the event given is set; returns whether it is.
        waits: Seconds that this process has waited for a processor; None: what the system tells.
    """

    def __init__(
        self,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[threading.Event, float], bool] = threading.Event.wait,
        waits: Callable[[], float] | None = None,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._pause = pause
        self._waits = waits or ProcessorWaits()
        self._ticked = clock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def turning(self) -> bool:
        """Whether the loop has ticked within the patience."""
        return self._clock() - self._ticked <= self._patience

    def tick(self) -> None:
        """Note that the loop turns."""
        self._ticked = self._clock()

    def start(self) -> None:
        """Watch the running loop of this thread until ``stop``."""
        self.tick()
        self._ended.clear()
        loop, here = asyncio.get_running_loop(), threading.get_ident()
        self._thread = threading.Thread(target=self._watch, args=(loop, here), name="chatfold loop watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        told: set[str] = set()
        ticked = self._ticked
        before = waits = self._waits()
        while not self._pause(self._ended, self._patience / LOOKS):
            if self._ticked != ticked:
                ticked, before = self._ticked, waits  # it was asked to at the look before
            waits = self._waits()
            if self.turning:
                if told:
                    _log.warning("event_loop_turns_again")
                told = set()
            else:
                self._tell(ticked, waits - before, thread, told)
            try:
                loop.call_soon_threadsafe(self.tick)
            except RuntimeError:  # the loop is closed
                return

    def _tell(self, ticked: float, waited: float, thread: int, told: set[str]) -> None:
        """Tell of a loop that stands still, once for each time: the same words again would say nothing new."""
        age = self._clock() - ticked
        if age - waited > self._patience:
            if "blocked" not in told:
                told.add("blocked")
                _log.error("event_loop_blocked", blocked_for=round(age, 3), stack=where(thread))
        elif not told:
            told.add("starved")
            _log.warning("event_loop_starved", blocked_for=round(age, 3), waited=round(waited, 3))


def where(thread: int) -> list[str]:
    """Return where a thread is, ``file:line function`` for each frame from the outermost on: code, and no values."""
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to another thread
    if frame is None:
        return []
    frames = traceback.StackSummary.extract(traceback.walk_stack(frame), limit=DEEPEST, lookup_lines=False)
    return [f"{_short(each.filename)}:{each.lineno} {each.name}" for each in reversed(frames)]


def _short(file: str) -> str:
    """Return the last parts of a path, enough to find the file by."""
    return "/".join(PurePath(file).parts[-3:])
