"""Many seeds, in processes of their own."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Final, Protocol

from chatfold.testing.simulation.profile import Size
from chatfold.testing.simulation.run import Outcome, simulate


class Run(Protocol):
    """Runs a seed within bounds; a function of a module, which other processes find by its name."""

    def __call__(self, seed: int, size: Size | None = None, *, trace: bool = False) -> Outcome:
        """Return what became of it."""
        ...


_AT_ONCE: Final = 20
"""Seeds that a process is given at a time."""


def outcomes(
    seeds: Sequence[int], size: Size | None = None, *, jobs: int = 1, run: Run = simulate
) -> Iterator[Outcome]:
    """Run seeds and yield what becomes of each, as it is known.

    Args:
        seeds: The seeds.
        size: Bounds of their worlds.
        jobs: Processes at once; 1 for this one.
        run: Runs one of them.
    """
    parts = [seeds[first : first + _AT_ONCE] for first in range(0, len(seeds), _AT_ONCE)]
    if jobs == 1:
        for seed in seeds:
            yield run(seed, size)
        return
    # Spawned and not forked: each begins with nothing of this process in it.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_leave_it_to_the_parent) as pool:
        waiting: list[Future[list[Outcome]]] = [pool.submit(_run, run, part, size) for part in parts]
        try:
            for ended in as_completed(waiting):
                yield from ended.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _leave_it_to_the_parent() -> None:
    """Let Ctrl-C end the parent alone, which ends this process then."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(run: Run, seeds: Sequence[int], size: Size | None) -> list[Outcome]:
    return [run(seed, size) for seed in seeds]
