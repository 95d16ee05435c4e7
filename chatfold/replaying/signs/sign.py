"""A sign of an incident, and what the functions that look for them share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from chatfold.replaying.turns import Turn
from events import vocabulary as v
from events.control import OpenCall, names_of_calls
from events.ids import CallKey
from events.parts import ToolCallPart
from events.records import AttemptKind
from events.replay import ReplayStep

SECOND: Final = 1_000_000
"""Microseconds."""


class Sign(Struct, frozen=True):
    """A sign of an incident in a turn.

    Attributes:
        version: The event that tells most of it.
        what: What happened.
        advice: What to do about it.
        since: Where it began; None for at that event.
        place: The version by which it is ordered among others of the turn; None for where it began.
    """

    version: int
    what: str
    advice: str
    since: int | None = None
    place: int | None = None

    @property
    def began(self) -> int:
        """The version at which it began."""
        return self.version if self.since is None else self.since

    @property
    def told_at(self) -> int:
        """The version by which it is ordered."""
        return self.began if self.place is None else self.place


def named(calls: Sequence[OpenCall], keys: Sequence[CallKey]) -> str:
    """Return calls with their tools' names."""
    names = names_of_calls(calls)
    return ", ".join(f"{names.get(key, 'a tool')} ({key})" for key in keys)


def kind_of(step: ReplayStep) -> AttemptKind | None:
    """Return the kind of the attempt that an event ends or tells of."""
    running = step.before.control.running
    return running.kind if running is not None else None


def calls_of(event: v.Event) -> Iterator[ToolCallPart]:
    """Yield what the model called in a step."""
    if isinstance(event, v.StepCommitted):
        yield from (part for _, part in event.tool_calls(0))


def last_end(turn: Turn) -> ReplayStep | None:
    """Return the event that ended a turn; of one that was resumed and ended again the last."""
    ends = (v.TurnFinished, v.TurnFailed, v.InterruptionFinished, v.ActionExpiredTurnEnded)
    return next((step for step in reversed(turn.steps) if isinstance(step.recorded.event, ends)), None)
