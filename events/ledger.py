"""What the model calls of a log took and cost, as its facts say it: contents are not needed. Pure.

A call that an answer came of is told by the step of its message, any other by the report of the event that ended it.
One that died with its worker before anything of it was kept is told by nothing but its start, and counts as unmetered.
Copies of messages, in forks and imports, cost nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from events.effects import EventBase, Interrupting
from events.envelope import Recorded
from events.messages import Step, Usage
from events.records import MODEL_KINDS
from events.vocabulary import (
    Acquired,
    AttemptStarted,
    CompactionCommitted,
    InterruptionFinished,
    MessagesImported,
    Released,
    RetryScheduled,
    StepCommitted,
    TurnFailed,
    TurnFinished,
)


class Ledger(Struct, frozen=True, kw_only=True):
    """What model calls took and cost.

    Attributes:
        calls: Model calls that something is known of, those among them that failed or were cut.
        usage: Their tokens.
        cost_micros: The cost of those that have a price, in micro-units of currency.
        unpriced: Calls whose cost is not known, or not all of it: their model had no price, or they are unmetered.
            Where there are any, ``cost_micros`` is too little.
        unmetered: Calls that their service accepted, or may have, without telling to their end what they took.
    """

    calls: int = 0
    usage: Usage = Usage()
    cost_micros: int = 0
    unpriced: int = 0
    unmetered: int = 0

    def __add__(self, other: Ledger) -> Ledger:
        """Return both together."""
        return Ledger(
            calls=self.calls + other.calls,
            usage=self.usage + other.usage,
            cost_micros=self.cost_micros + other.cost_micros,
            unpriced=self.unpriced + other.unpriced,
            unmetered=self.unmetered + other.unmetered,
        )


def steps_of(event: EventBase) -> Iterator[Step]:
    """Yield what an event tells of model calls."""
    if not isinstance(event, MessagesImported):
        yield from (message.step for message in getattr(event, "added", ()) if message.step is not None)
    for name in ("report", "cut"):
        report = getattr(event, name, None)
        if report is not None and report.step is not None:
            yield report.step


def ledger_of(log: Iterable[Recorded]) -> Ledger:
    """Return what the model calls of a log took and cost.

    Args:
        log: The chat's events, with or without their contents.
    """
    events = [recorded.event for recorded in log]
    steps = [step for event in events for step in steps_of(event)]
    lost = sum(_lost_calls(events))
    return Ledger(
        calls=len(steps) + lost,
        usage=Usage().plus(step.usage for step in steps),
        cost_micros=sum(step.cost_micros or 0 for step in steps),
        unpriced=sum(step.cost_micros is None or step.unmetered for step in steps) + lost,
        unmetered=sum(step.unmetered for step in steps) + lost,
    )


def _lost_calls(events: Iterable[EventBase]) -> Iterator[bool]:
    """Yield of each event that ends or follows a model call whether that call is lost.

    It is, where its worker died and neither this event nor the next start tells anything of it. Of a worker that lives,
    silence says that the service took nothing.
    """
    calling = dead = False
    for event in events:
        dead = dead or (calling and _tells_of_a_death(event))
        told = any(steps_of(event))
        if calling and (told or _ends(event)):
            yield dead and not told
            calling = dead = False
        calling = calling or _starts_a_call(event)


def _ends(event: EventBase) -> bool:
    """Whether a model call under way before an event is not so after it: it ends it, or follows one that ended it."""
    return isinstance(event, _ENDS) or (isinstance(event, Interrupting) and event.epoch is not None)


def _starts_a_call(event: EventBase) -> bool:
    return isinstance(event, AttemptStarted) and event.kind in MODEL_KINDS


def _tells_of_a_death(event: EventBase) -> bool:
    """Whether an event says that the worker, or what ran the chat in it, was dead."""
    if isinstance(event, Acquired):
        return event.takeover
    if isinstance(event, Released):
        return event.reason == "fault"
    return isinstance(event, Interrupting) and event.epoch is not None


_ENDS: Final = (
    AttemptStarted,
    CompactionCommitted,
    InterruptionFinished,
    Released,
    RetryScheduled,
    StepCommitted,
    TurnFailed,
    TurnFinished,
)
