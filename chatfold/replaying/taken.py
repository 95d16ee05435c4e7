"""Decisions as they are compared: a recorded one and a new one in the same form. Pure.

Owns which event carries which decision out, and what of the event is the decision's: what a command adds to it
(deadlines, what the client is asked for) is the engine's, and only a rerun sees that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from events.records import Decision
from events.vocabulary import ActionRequired, AttemptStarted, Event, TurnFailed, TurnFinished
from generation.decision import (
    AskClient,
    CollectContext,
    Compact,
    Fail,
    Finish,
    Generate,
    GenerationDecision,
    RunTools,
)


class Taken(Struct, frozen=True):
    """A decision, and what the event does that carries it out.

    Attributes:
        decision: What is recorded of it.
        event: The type of the event.
        what: Of an attempt its kind; of the end of a turn its cause; ``budget`` or ``calls`` where the client is asked;
            of a failure the error's kind.
        calls: The calls that an attempt starts.
    """

    decision: Decision
    event: str
    what: str
    calls: tuple[str, ...] = ()

    def does_as(self, other: Taken) -> bool:
        """Whether both come to the same, whatever was read."""
        return (self.event, self.what, self.calls) == (other.event, other.what, other.calls)


_BUDGET: Final = "budget"
_CALLS: Final = "calls"


def _asked(event: ActionRequired) -> Taken:
    asks = _BUDGET if any(item.kind == "budget" for item in event.items) else _CALLS
    return Taken(event.decision, event.type, asks)


def _failed(event: TurnFailed) -> Taken | None:
    return None if event.decision is None else Taken(event.decision, event.type, event.error.kind)


_RECORDED: Final[Mapping[type, Callable[[Any], Taken | None]]] = MappingProxyType(
    {
        AttemptStarted: lambda event: Taken(event.decision, event.type, event.kind, event.calls),
        ActionRequired: _asked,
        TurnFinished: lambda event: Taken(event.decision, event.type, event.cause),
        TurnFailed: _failed,
    }
)
"""How each event is read that can carry a decision out."""

_NEW: Final[Mapping[type, Callable[[Any], Taken]]] = MappingProxyType(
    {
        RunTools: lambda new: Taken(new.record, AttemptStarted.type, "tools", new.calls),
        Generate: lambda new: Taken(new.record, AttemptStarted.type, "generate"),
        Compact: lambda new: Taken(new.record, AttemptStarted.type, "compact"),
        CollectContext: lambda new: Taken(new.record, AttemptStarted.type, "context"),
        AskClient: lambda new: Taken(new.record, ActionRequired.type, _BUDGET if new.budget else _CALLS),
        Finish: lambda new: Taken(new.record, TurnFinished.type, new.cause),
        Fail: lambda new: Taken(new.record, TurnFailed.type, new.kind),
    }
)
"""How each decision is carried out."""

DECISIONS: Final = tuple(_NEW)
"""The types of generation decisions."""


def recorded_decision(event: Event) -> Taken | None:
    """Return the decision that an event carries out; None where it carries none."""
    read = _RECORDED.get(type(event))
    return None if read is None else read(event)


def new_decision(decision: GenerationDecision) -> Taken:
    """Return a decision as its event would carry it out."""
    return _NEW[type(decision)](decision)
