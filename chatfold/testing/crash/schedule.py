"""The schedule: which fault comes when, and how each worker process is armed, all derived from the seed. Pure.

What the faults are done to depends on how fast the machine is, so a schedule repeats exactly and its effects nearly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.testing.crash.config import CrashConfig
from store.failpoints import POINTS, Point

Kind: TypeAlias = Literal["kill", "stop", "drain", "terminate one", "terminate all"]

_WEIGHTS: Final[dict[Kind, int]] = {"kill": 70, "stop": 9, "drain": 11, "terminate one": 6, "terminate all": 4}

_NOT_IN_WORKERS: Final[frozenset[Point]] = frozenset(
    {"delete.committed", "import.committed", "migration.begun", "migration.written"}
)
"""Points that no worker of a crash test comes to: its users delete and import nothing."""

_OFTEN: Final[frozenset[Point]] = frozenset(
    {"append.answered", "append.committed", "append.handed", "append.written", "provider.part"}
)
"""Points that a worker comes to many times a second: they are armed for a later time, so that it gets to work first."""


_SPARED: Final = (2.5, 5.0)
"""Seconds for which the last of several workers is spared: it is killed when it has said things some time ago."""


class Fault(Struct, frozen=True, kw_only=True):
    """Something that is done to the workers.

    Attributes:
        kind: ``kill`` (SIGKILL), ``stop`` (SIGSTOP, then SIGCONT), ``drain`` (SIGTERM), or the termination of one or
            of all connections of the database.
        slot: Which of the workers.
        after: Seconds after the fault before it.
        hold: Seconds for which it stays stopped, some of them longer than a lease.
    """

    kind: Kind
    slot: int
    after: float
    hold: float


class Life(Struct, frozen=True, kw_only=True):
    """One worker process from its start to its end.

    Attributes:
        number: Counts the processes of its slot, from 0.
        pause: Seconds before it is started.
        deaf: Whether it gets no hints.
        failpoints: How it is armed; see ``store.failpoints.arm``.
        hold: Seconds for which it stays stopped where a failpoint stops it.
        drained: Seconds after which it is told to end, so that it comes to the points on that way; None: it is not.
        capacity: Chats that it runs at once, where that is not what all do.
        spared: Seconds for which the schedule does nothing to it.
        hurried: Its model is never slow.
    """

    slot: int
    number: int
    pause: float = 0.0
    deaf: bool = False
    failpoints: str = ""
    hold: float = 0.0
    drained: float | None = None
    capacity: int | None = None
    spared: float = 0.0
    hurried: bool = False


def faults(config: CrashConfig) -> Iterator[Fault]:
    """Yield the faults of a crash test, without end."""
    chance = random.Random(f"{config.seed} faults")  # noqa: S311 - it is to be repeated, not to be secret
    kinds = [kind for kind in _WEIGHTS if config.on_postgres or not kind.startswith("terminate")]
    weights = [_WEIGHTS[kind] for kind in kinds]
    while True:
        yield Fault(
            kind=chance.choices(kinds, weights)[0],
            slot=chance.randrange(config.workers),
            after=chance.expovariate(config.rate),
            hold=_hold(chance, config),
        )


def life(config: CrashConfig, slot: int, number: int) -> Life:
    """Return how the process ``number`` of a slot lives."""
    chance = random.Random(f"{config.seed} life {slot} {number}")  # noqa: S311 - see ``faults``
    if 0 < slot == config.workers - 1:
        # The others are killed before any of their answers is old.
        return Life(slot=slot, number=number, spared=chance.uniform(*_SPARED))
    armed = config.failpoints and chance.random() < 0.8
    point = chance.choice([point for point in POINTS if point not in _NOT_IN_WORKERS])
    return Life(
        slot=slot,
        number=number,
        pause=chance.choice([0.0, 0.0, 0.0, chance.expovariate(2)]),
        deaf=chance.random() < 0.15,
        failpoints=_order(chance, point) if armed else "",
        hold=_hold(chance, config),
        drained=chance.uniform(0.2, 1.0) if armed and point.startswith("stop.") else None,
    )


def _order(chance: random.Random, point: Point) -> str:
    action = "stop" if chance.random() < 0.15 else "kill"
    mean = 15.0 if point in _OFTEN else 0.0 if point.startswith("stop.") else 0.7
    return f"{point}={action}@{1 + (int(chance.expovariate(1 / mean)) if mean else 0)}"


def _hold(chance: random.Random, config: CrashConfig) -> float:
    """A lease and more in two of three cases: the worker wakes when others have its chats."""
    return config.lease * chance.choice([0.3, 1.3, 1.8])
