"""What a simulated process takes from its machine: clocks, random bytes, threads. All of it is the seed's.

Replaces the functions of the standard library for the time of a run. Code outside of the simulation (other threads,
other loops) goes on with the real ones.
"""

from __future__ import annotations

import os
import random as global_random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from types import SimpleNamespace
from typing import Any, Final

import anyio.to_thread

from chatfold import randomness
from chatfold.virtual.loop import HOST, WORLD, SimulatedLoop

EPOCH_US: Final = 1_700_000_000_000_000
"""Database time at the beginning of every run, in microseconds UTC."""

_THREAD_STARTS: Final = 0.002
_THREAD_RUNS: Final = 0.2
"""Seconds within which a simulated thread begins, and those that it takes at most, at random."""


@contextmanager
def simulated_machine(loop: SimulatedLoop, random: Random) -> Iterator[None]:
    """Give all code that runs on ``loop`` the virtual machine while the context is entered."""

    def instead(real: Callable[..., Any], virtual: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            return real(*args) if HOST.get() is None else virtual(*args)

        return call

    def wall_us() -> int:
        return EPOCH_US + round(loop.time() * 1e6) + (HOST.get() or WORLD).ahead

    threads = Random(random.random())
    replaced: dict[tuple[Any, str], Callable[..., Any]] = {
        (time, "time"): lambda: wall_us() / 1e6,
        (time, "time_ns"): lambda: wall_us() * 1000,
        (time, "monotonic"): loop.time,
        (time, "monotonic_ns"): lambda: round(loop.time() * 1e9),
        (time, "perf_counter"): loop.time,
        (time, "perf_counter_ns"): lambda: round(loop.time() * 1e9),
        (time, "clock_gettime"): lambda _: loop.time(),
        (os, "urandom"): random.randbytes,
    }
    values: dict[tuple[Any, str], object] = {
        place: instead(getattr(*place), virtual) for place, virtual in replaced.items()
    }
    before = global_random.getstate()
    stock = SimpleNamespace(take=random.randbytes)
    others: dict[tuple[Any, str], object] = {
        (randomness, "RANDOM"): stock,
        (anyio.to_thread, "run_sync"): _threads(loop, threads),
    }
    with replacing(values | others):
        global_random.seed(random.random())
        try:
            yield
        finally:
            global_random.setstate(before)


@contextmanager
def replacing(values: Mapping[tuple[Any, str], object]) -> Iterator[None]:
    """Put values in the place of modules' own, by module and name, while the context is entered."""
    before = {(module, name): getattr(module, name) for module, name in values}
    try:
        for (module, name), value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)


def _threads(loop: SimulatedLoop, random: Random) -> Callable[..., Any]:
    real = anyio.to_thread.run_sync

    async def run_sync(func: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Run ``func`` at some moment, and tell its end at a later one; who is cancelled meanwhile does not wait."""
        if HOST.get() is None:
            return await real(func, *args, **options)
        ended = loop.create_future()

        def run() -> None:
            try:
                value, error = func(*args), None
            except BaseException as raised:  # noqa: BLE001 - it is the caller's, as a thread's would be
                value, error = None, raised
            loop.call_later(random.random() * _THREAD_RUNS, _end, ended, value, error)

        loop.call_later(random.random() * _THREAD_STARTS, run)
        return await ended

    return run_sync


def _end(ended: Any, value: object, error: BaseException | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(value)
    else:
        ended.set_exception(error)
