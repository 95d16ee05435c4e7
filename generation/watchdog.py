"""Watches from a thread of its own that the event loop turns, and says where it stands when it does not.

A function that blocks the loop stops everything of this process: streams, hints, and the heartbeat, so that other
workers take its chats over. Nothing on the loop can tell of it while it lasts. Owns the thread and the log lines; what
a worker does about it is the lease's matter.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import PurePath
from types import FrameType
from typing import Final

from store.log import get_logger

_log: Final = get_logger(__name__)

LOOKS: Final = 6
"""How often the thread looks within the time after which it speaks."""

DEEPEST: Final = 40
"""Frames of the stack that are told, the innermost ones."""


class LoopWatch:
    """Whether an event loop turns.

    Args:
        patience: Seconds without a turn after which the loop counts as blocked.
        clock: Seconds of a clock that never goes back.
        pause: Waits for so many seconds, or until the event given is set; returns whether it is.
    """

    def __init__(
        self,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[threading.Event, float], bool] = threading.Event.wait,
    ) -> None:
        self._patience = patience
        self._clock = clock
        self._pause = pause
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
        told = False
        while not self._pause(self._ended, self._patience / LOOKS):
            if self.turning:
                if told:
                    _log.warning("event_loop_turns_again")
                told = False
            elif not told:
                # Once for each time that it is blocked: the same words again would say nothing new.
                told = True
                blocked_for = round(self._clock() - self._ticked, 3)
                _log.error("event_loop_blocked", blocked_for=blocked_for, stack=where(thread))
            try:
                loop.call_soon_threadsafe(self.tick)
            except RuntimeError:  # the loop is closed
                return


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
