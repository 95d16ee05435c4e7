"""Processes beside this one, for work that takes more than one core."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of processes; when the context is left, what was not begun is dropped and what runs is waited for.

    Args:
        jobs: How many, at least 1.
    """
    # Spawned and not forked: each begins with nothing of this process in it.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_leave_it_to_the_parent) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _leave_it_to_the_parent() -> None:
    """Let Ctrl-C end the parent alone, which ends this process then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def cores() -> int:
    """Return how many processes can run at once, as far as this one may use the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
