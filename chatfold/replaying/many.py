"""The same work on many logs: in this process, or on several cores; the results come in the order of the logs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from itertools import islice
from typing import Final, TypeVar

from chatfold.processes import cores, processes
from events.errors import InvalidValue
from events.given import checked_sequence

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE: Final = 25
"""Logs that a process is given at a time, at most: handing over costs more than a short log does."""
_AHEAD: Final = 4
"""Portions for each process that may wait: results that come early are kept, those of all logs need not be."""


class WorkFailed(Exception):
    """The work on an item raised what it should have told as a result.

    Attributes:
        item: The item.
        said: What was raised, in words: an exception of another process cannot always be made anew here.
    """

    def __init__(self, item: str, said: str) -> None:
        super().__init__(item, said)
        self.item = item
        self.said = said

    def __str__(self) -> str:
        """Say both."""
        return f"{self.item}: {self.said}"


def each(
    work: Callable[[T], R],
    items: Sequence[T],
    *,
    jobs: int | None = None,
    done: Callable[[], None] | None = None,
) -> Iterator[R]:
    """Yield what some work gives for each item, in their order.

    Nothing is begun before the first result is asked for; who stops asking (``close``) stops the work.

    Args:
        work: A function of a module, or a ``partial`` of one, so that other processes find it. What it gives is handed
            over, so it must be something that can be; errors that are expected belong into it.
        items: What to work on, such as log sources.
        jobs: Processes at once; 1 for this process alone, which is taken for a single item too; None for as many as
            the machine has cores for.
        done: Called after each item, in this process, before its result is given: for progress.

    Raises:
        WorkFailed: The work raised an error; when the result of that item, or of one handed over with it, is asked for.
        InvalidValue: ``items`` is no sequence, or ``work`` no function.
    """
    if not callable(work):
        raise InvalidValue("$.work", f"must be a function, not {type(work).__name__}")
    checked_sequence(items, "$.items", "several items in a sequence")
    wanted = min(cores() if jobs is None else max(jobs, 1), len(items))
    with closing(_here(work, items) if wanted <= 1 else _beside(work, items, wanted)) as results:
        for result in results:
            if done is not None:
                done()
            yield result


def _here(work: Callable[[T], R], items: Sequence[T]) -> Generator[R, None, None]:
    for item in items:
        yield from _run(work, (item,))


def _beside(work: Callable[[T], R], items: Sequence[T], jobs: int) -> Generator[R, None, None]:
    size = min(_AT_ONCE, -(-len(items) // jobs))
    portions = (items[first : first + size] for first in range(0, len(items), size))
    with processes(jobs) as pool:
        first = islice(portions, jobs * _AHEAD)
        waiting: deque[Future[list[R]]] = deque(pool.submit(_run, work, part) for part in first)
        while waiting:
            results = waiting.popleft().result()
            if (part := next(portions, None)) is not None:
                waiting.append(pool.submit(_run, work, part))
            yield from results


def _run(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    results = []
    for item in items:
        try:
            results.append(work(item))
        except Exception as error:
            raise WorkFailed(str(item), f"{type(error).__name__}: {error}") from error
    return results
