"""Tests in virtual time: an hour of waiting for a retry, a deadline or a lease takes some milliseconds.

Owns running an application's coroutine with the engine's own code on a loop whose clock jumps. What such a loop cannot
do (sockets, processes) is what such a test does not need: a scripted model, tools in Python, a store in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from inspect import isawaitable
from random import Random
from typing import Any, Final, Generic, TypeVar

from chatfold.engine import Engine
from chatfold.randomness import new_id
from chatfold.settings import Settings
from chatfold.testing.simulation.machine import EPOCH_US, simulated_machine
from chatfold.virtual.loop import HOST, Host, SimulatedLoop
from chatfold.virtual.running import alone, drive, end
from events.errors import InvalidValue
from events.given import called
from events.values import checked_whole
from generation.agents import Agent
from generation.providers.contract import Provider
from store.memory import MemoryStore

__all__ = ["VirtualTime", "VirtualTimeStopped"]

_T = TypeVar("_T")

STEPS: Final = 2_000_000
"""Steps of the event loop after which a run is given up."""


class VirtualTimeStopped(RuntimeError):
    """A run in virtual time was given up: it waits for what can never come, or went on without end."""


class VirtualTime:
    """A clock that stands still while anything is to be done, and then jumps to what is waited for next.

    Virtual within :meth:`run` are the clocks of the module ``time``, ``asyncio.sleep`` and timeouts; not so
    ``datetime.now()``. Threads are simulated: what runs in one takes up to 0.2 virtual seconds, by chance, and runs in
    one piece. A sync tool that waits does so in real time, and no timeout ends it. Chance is the seed's, so a run
    repeats.

    Args:
        seed: Decides what is left to chance: ids, jitter, how long threads take.

    Raises:
        InvalidValue: The seed is no whole number of at least 0.

    Attributes:
        seconds: Virtual seconds that the last run took, or the present one has taken so far.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = checked_whole(seed, "$.seed")
        self._loop: SimulatedLoop | None = None
        self._last = 0.0

    @property
    def seconds(self) -> float:
        """Virtual seconds since the beginning of the run."""
        return self._last if self._loop is None else self._loop.time()

    def run(self, main: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Run a coroutine function to its end in virtual time, and return what it returns.

        Args:
            main: What to run. An engine of :meth:`engine` is entered within it.

        Raises:
            InvalidValue: It is no coroutine function.
            VirtualTimeStopped: It waits for what never comes.
            RuntimeError: It was called from a coroutine: a run has an event loop of its own.
            BaseException: What ``main`` raises.
        """
        _check_main(main)
        kept: _Kept[_T] = _Kept()
        with alone():
            loop = SimulatedLoop(_seeded(self._seed), steps=STEPS, shuffled=False)
            host = Host("test")
            self._loop = loop
            try:
                with simulated_machine(loop, _seeded(self._seed)):
                    drive(loop, kept.keep(main), host.context())
                    end(loop)
            finally:
                self._last, self._loop = loop.time(), None
        if kept.error is not None:
            raise kept.error
        if not kept.values:
            raise VirtualTimeStopped(loop.failure or "the run ended before the coroutine did")
        return kept.values[0]

    def engine(
        self,
        agents: Iterable[Agent],
        *,
        providers: Mapping[str, Provider] | None = None,
        settings: Settings | None = None,
        store: MemoryStore | None = None,
        **options: Any,
    ) -> Engine:
        """Return an engine over a store in memory that knows no other time; for use within :meth:`run`.

        Args:
            agents: As for :class:`chatfold.Engine`; so are all other arguments.
            providers: Providers by name.
            settings: Times and limits.
            store: The store, where engines share one; None for an empty one.
            options: Further arguments of the engine.

        Raises:
            RuntimeError: It was called outside of a run.
        """
        if HOST.get() is None or self._loop is None:
            raise RuntimeError(
                "an engine in virtual time is made within VirtualTime.run(main): in main, or what it calls"
            )
        engine = Engine(
            MemoryStore() if store is None else store, agents, providers=providers, settings=settings, **options
        )
        # A thread that watches the loop would look at a real clock, and ids by default take the time of one.
        engine.runtime.settings = replace(engine.runtime.settings, watch_loop=False)
        engine.runtime.new_id = lambda: new_id(time.time)
        return engine

    @property
    def now_us(self) -> int:
        """The time of the run's clocks, in microseconds UTC: what events are recorded at."""
        return EPOCH_US + round(self.seconds * 1e6)


class _Kept(Generic[_T]):
    """What a coroutine returned or raised, kept out of the loop's hands."""

    def __init__(self) -> None:
        self.values: list[_T] = []
        self.error: BaseException | None = None

    async def keep(self, main: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        try:
            made: object = main()
            if not isawaitable(made):
                raise _no_main(main, f", which gives {called(made)} and no coroutine")
            self.values.append(await made)
        except GeneratorExit:  # the run was given up, and closes what is left
            raise
        except BaseException as error:  # noqa: BLE001 -- it is the caller's, an exit of pytest too
            self.error = error


def _check_main(main: object) -> None:
    """Check that something can be called for what is run.

    Raises:
        InvalidValue: It cannot be; a coroutine is closed, so that nothing else is said of it.
    """
    if isinstance(main, Coroutine):
        main.close()
        raise _no_main(main, ": run(main), not run(main())")
    if not callable(main):
        raise _no_main(main)


def _no_main(main: object, more: str = "") -> InvalidValue:
    return InvalidValue("$.main", f"must be a coroutine function that takes nothing, not {called(main)}{more}")


def _seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 -- a run that repeats is what is wanted
