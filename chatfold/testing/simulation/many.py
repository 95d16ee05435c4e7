"""Many seeds, in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from typing import Final, Protocol

from chatfold.processes import processes
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
    with processes(jobs) as pool:
        waiting: list[Future[list[Outcome]]] = [pool.submit(_run, run, part, size) for part in parts]
        for ended in as_completed(waiting):
            yield from ended.result()


def _run(run: Run, seeds: Sequence[int], size: Size | None) -> list[Outcome]:
    return [run(seed, size) for seed in seeds]
