"""What the model calls of a log took and cost, as its facts say it: contents are not needed. Pure.

A call that an answer came of is told by the step of its message, any other by the report of the event that ended it.
Copies of messages, in forks and imports, cost nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from events.effects import EventBase
from events.envelope import Recorded
from events.messages import Step, Usage
from events.vocabulary import MessagesImported


class Ledger(Struct, frozen=True, kw_only=True):
    """What model calls took and cost.

    Attributes:
        calls: Model calls that something is known of, those among them that failed or were cut.
        usage: Their tokens.
        cost_micros: The cost of those that have a price, in micro-units of currency.
        unpriced: Calls whose cost is not known, or not all of it: their model had no price, or they are unmetered.
            Where there are any, ``cost_micros`` is too little.
        unmetered: Calls that their service accepted without telling, to their end, what they took.
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
    steps = [step for recorded in log for step in steps_of(recorded.event)]
    return Ledger(
        calls=len(steps),
        usage=Usage().plus(step.usage for step in steps),
        cost_micros=sum(step.cost_micros or 0 for step in steps),
        unpriced=sum(step.cost_micros is None or step.unmetered for step in steps),
        unmetered=sum(step.unmetered for step in steps),
    )
