"""``simulate``: one seed from its beginning to its end, in the same way each time."""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeAlias

from chatfold.testing.simulation.agents import MOOD, Mood
from chatfold.testing.simulation.ledger import Ledger
from chatfold.testing.simulation.machine import replacing, simulated_machine
from chatfold.testing.simulation.profile import Size, checked_size, draw
from chatfold.testing.simulation.world import World
from chatfold.virtual.loop import HOST, WORLD, SimulatedLoop
from chatfold.virtual.running import alone, drive, end
from events.values import checked_whole
from store import building, loading

_LAYERS: Final = ("chatfold", "generation", "store", "chatstate", "events")
_SHOWN: Final = 60
"""Lines of the trace that a failure shows."""

_FAULTS: Final = frozenset(
    {"runner_failed", "chat_failed", "effect_failed", "acquire_pass_failed", "heartbeat_failed", "outcome_refused"}
)
"""What the engine logs with an error that it did not expect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a seed.

    Attributes:
        seed: The seed.
        violation: What must not have happened and did; None where all was well.
        digest: SHA-256 (hex) of the trace: the same wherever the seed is run by the same code.
        steps: Steps that the event loop took.
        seconds: Virtual seconds that passed.
        events: Events that were committed.
        trace: What happened, line by line; the last lines only, unless the whole was asked for.
        profile: The world that the seed drew.
    """

    seed: int
    violation: str | None
    digest: str
    steps: int
    seconds: float
    events: int
    trace: tuple[str, ...]
    profile: object


class Living(Protocol):
    """What can be played: it goes through all that it is about, and its store's ledger sees what it writes."""

    ledger: Ledger

    async def live(self) -> None:
        """Go through all of it; what is wrong is told to the loop."""
        ...


Tell: TypeAlias = Callable[[str], None]
"""Takes lines of the trace."""


class _Trace:
    """Takes lines and hashes them; keeps the last ones, or all."""

    def __init__(self, loop: SimulatedLoop, *, whole: bool) -> None:
        self._loop = loop
        self._hash = hashlib.sha256()
        self.lines: deque[str] = deque(maxlen=None if whole else _SHOWN)

    def tell(self, line: str) -> None:
        """Take a line."""
        timed = f"{self._loop.time():10.4f} {line}"
        self._hash.update(timed.encode())
        self.lines.append(timed)

    def digest(self) -> str:
        """Return the hash of all lines."""
        return self._hash.hexdigest()


def simulate(seed: int, size: Size | None = None, *, trace: bool = False) -> Outcome:
    """Run one seed.

    The engine's own code runs over the memory store, with virtual time and a network in between that loses, delays and
    reorders; processes are killed, stopped and restarted; users send commands and insist. Nothing outside is touched:
    no file, no socket, no thread, no real clock.

    Args:
        seed: Decides everything.
        size: Bounds of the world; None for the usual ones. The same seed in another size is another run.
        trace: Whether to keep the whole trace.

    Returns:
        What became of it. A violation is told there and not raised.

    Raises:
        InvalidValue: The seed is no whole number of at least 0, or the size is none.
        RuntimeError: It was called from a coroutine: it runs an event loop of its own.
    """
    checked_whole(seed, "$.seed")
    bounds = checked_size(size)
    with alone():
        return _simulate(seed, bounds, trace=trace)


def _simulate(seed: int, size: Size, *, trace: bool) -> Outcome:
    random = Random(seed)
    profile = draw(random, size)
    loop = SimulatedLoop(Random(random.random()), steps=size.steps, shuffled=profile.shuffled)
    mood = Mood(profile, Random(random.random()))
    machine = Random(random.random())

    def make(tell: Tell) -> World:
        MOOD.set(mood)  # first, so that all contexts that the world makes have it
        return World(loop, profile, random, mood, tell)

    return play(seed, loop, machine, make, segment=profile.segment, profile=profile, trace=trace)


def play(
    seed: int,
    loop: SimulatedLoop,
    machine: Random,
    make: Callable[[Tell], Living],
    *,
    segment: int,
    profile: object,
    trace: bool,
) -> Outcome:
    """Make a world and let it live, ``alone``.

    Args:
        seed: What it is told by.
        loop: Virtual time.
        machine: Where the randomness of its machine comes from.
        make: Makes the world; given what takes lines of the trace.
        segment: The number of events after which a segment is built.
        profile: What the seed drew, as failures show it.
        trace: Whether to keep the whole trace.

    Returns:
        What became of it.
    """
    lines = _Trace(loop, whole=trace)
    short = {(loading, "TAIL"): segment, (building, "TAIL"): segment}
    with simulated_machine(loop, machine), replacing(short):
        context = WORLD.context()
        world = context.run(make, lines.tell)
        with _listening(world.ledger):
            try:
                drive(loop, context.run(world.live), context)
                for error in loop.unretrieved():
                    loop.fail(f"nobody looked at {type(error).__name__}: {error}")
            finally:
                failure, seconds, taken = loop.failure, loop.time(), loop.taken
                end(loop)
    return Outcome(
        seed=seed,
        violation=failure,
        digest=lines.digest(),
        steps=taken,
        seconds=seconds,
        events=sum(map(len, world.ledger.logs.values())),
        trace=tuple(lines.lines),
        profile=profile,
    )


@contextmanager
def _listening(ledger: Ledger) -> Iterator[None]:
    """Take the engine's own complaints for violations, and let it log nothing else."""
    handler = _Complaints(ledger)
    loggers = [logging.getLogger(name) for name in _LAYERS]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, (level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate


class _Complaints(logging.Handler):
    """Reads the engine's log: errors that it did not expect, and leases that it took for lost."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.WARNING)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        """Look at one record."""
        said, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
        host = HOST.get()
        if host is None or host.dead:
            return
        if said in _FAULTS and (error is not None or record.levelno >= logging.ERROR):
            self._ledger.fail(f"{host.name} {said}: {type(error).__name__}: {error}")
        if said in {"lease_not_renewed", "lease_lost"}:
            self._ledger.doubt(str(getattr(record, "worker", "")))
