"""``rerun``: one log through the engine again, from its first event to its last."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from msgspec import Struct

from chatfold.replaying.logs import Log
from chatfold.rerunning.director import Difference, Director, Parted
from chatfold.virtual.loop import SimulatedLoop
from chatfold.virtual.running import alone, drive, end
from events import vocabulary as v
from events.envelope import Recorded
from generation.agents import Agent

_STEPS: Final = 100_000
_STEPS_PER_EVENT: Final = 2_000


class RerunReport(Struct, frozen=True, kw_only=True):
    """What became of a rerun.

    Attributes:
        log: What the log is called.
        events: Events of the log.
        again: How many of them came out again.
        difference: Where it parted from the log; None where it did not.
        unsupported: Why the log cannot be run again; None where it was.
    """

    log: str
    events: int
    again: int
    difference: Difference | None = None
    unsupported: str | None = None


def rerun(log: Log, agents: Iterable[Agent] = ()) -> RerunReport:
    """Run a log through today's engine."""
    recorded = log.recorded()
    return _rerun(log.name, recorded, {agent.name: agent for agent in agents})


def _rerun(name: str, recorded: list[Recorded], agents: dict[str, Agent]) -> RerunReport:
    if not recorded or not isinstance(recorded[0].event, v.ChatCreated | v.ChatForked):
        return RerunReport(log=name, events=len(recorded), again=0, unsupported="it does not begin with the chat's beginning")
    loop = SimulatedLoop(Random(0), steps=_STEPS + _STEPS_PER_EVENT * len(recorded), shuffled=False)
    director: list[Director] = []
    found: list[Difference] = []

    async def main() -> None:
        director.append(Director(recorded, agents))
        try:
            await director[0].play()
        except Parted as parted:
            found.append(parted.difference)

    with alone():
        try:
            drive(loop, main())
        finally:
            failure = loop.failure
            end(loop)
    at = director[0].at if director else 0
    difference = found[0] if found else None
    if difference is None and failure is not None:
        difference = Difference(version=at + 1, kind="stuck", said=failure)
    return RerunReport(log=name, events=len(recorded), again=at, difference=difference)
