"""Where each event of a log came from: a decision, the effect that one began, a user, a deadline, a dead holder. Pure.

Owns the sentence for each type of event that a worker or a deadline causes; of others it is ``users``'s. All of it is
told from the log alone, without its contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec import Struct

from chatfold.replaying.taken import recorded_decision
from chatfold.replaying.users import asked_for, said_of_writer, seconds_allowed
from chatfold.replaying.words import Explanation, error_name, explain
from events.effects import Effects, Interrupting
from events.envelope import Recorded
from events.given import one_log
from events.ids import CallKey
from events.records import ReleaseReason
from events.vocabulary import (
    Acquired,
    ActionExpired,
    ActionExpiredTurnEnded,
    ActionRequired,
    AttemptStarted,
    CompactionCommitted,
    ContextPersisted,
    InterruptionFinished,
    PolicyRecorded,
    Reconciled,
    Released,
    RetryScheduled,
    StepCommitted,
    ToolResultRecorded,
    TurnFailed,
)


class Cause(Struct, frozen=True, kw_only=True):
    """Where one event came from.

    Attributes:
        version: The event's.
        event: Its type.
        because: Why it is there, in a clause.
        decided_at: The version of the event with the decision behind it; its own where it carries one out; None where
            none is.
        decision: That decision in words, of an event that carries one out.
    """

    version: int
    event: str
    because: str
    decided_at: int | None = None
    decision: Explanation | None = None


class _Before(NamedTuple):
    """What came before an event.

    The newest start of an attempt, the newest end of a turn by a user, the newest question to the client, and the names
    of the tools that were called.
    """

    started: int | None
    ended: int | None
    asked: Recorded | None
    names: dict[CallKey, str]

    def called(self, calls: Iterable[CallKey]) -> str:
        """Return calls with their tools' names."""
        return ", ".join(map(self.one, calls))

    def one(self, call: CallKey) -> str:
        """Return a call with its tool's name."""
        return f"{self.names[call]} ({call})" if call in self.names else call


_RELEASES: Final[Mapping[ReleaseReason, str]] = MappingProxyType(
    {
        "shutdown": "the worker was stopped",
        "drain": "the worker is to take up nothing more, and let the chat go",
        "capacity": "the worker had nobody to run it, and let the chat go for another one",
        "agent_not_here": "the worker does not have the chat's agent",
        "fault": "what ran the chat in the worker died",
    }
)


def _attempt(event: Any, before: _Before) -> str:
    by = "" if before.started is None else f", which version {before.started} began"
    return f"it is what came of attempt {event.attempt}{by}"


def _step(event: StepCommitted, before: _Before) -> str:
    calls = [part.name for _, part in event.tool_calls(0)]
    return _attempt(event, before) + (f": the model calls {', '.join(calls)}" if calls else "")


def _result(event: ToolResultRecorded, before: _Before) -> str:
    what = "error" if event.result.failed else "result"
    return f"{_attempt(event, before)}: the {what} of {before.called([event.result.call])}"


def _unknown(calls: Sequence[CallKey], before: _Before) -> str:
    return f"; whether {before.called(calls)} took effect is not known" if calls else ""


def _lost(event: Acquired | Released | TurnFailed, before: _Before) -> str:
    again = f"; {before.called(event.again)} may have taken effect too, and can be run again" if event.again else ""
    return _unknown(event.unknown, before) + again


def _acquired(event: Acquired, before: _Before) -> str:
    if not event.takeover:
        return "a worker took the chat up"
    return f"the holder before was dead, and a worker took the chat over{_lost(event, before)}"


def _retry(event: RetryScheduled, before: _Before) -> str:
    by = "" if before.started is None else f", which version {before.started} began,"
    wait = event.delay_us / 1_000_000
    return f"attempt {event.attempt}{by} failed: {error_name(event.error)}; it is tried again after {wait:g} s"


def _failed(event: TurnFailed, before: _Before) -> str:
    if event.attempt is None or before.started is None:
        return f"the turn could not go on: {error_name(event.error)}{_lost(event, before)}"
    what = f"attempt {event.attempt}, which version {before.started} began, failed"
    return f"{what}: {error_name(event.error)}{_lost(event, before)}"


def _interrupted(_: InterruptionFinished, before: _Before) -> str:
    return "a user ended the turn" + ("" if before.ended is None else f" at version {before.ended}")


def _expired(event: ActionExpired | ActionExpiredTurnEnded, before: _Before) -> str:
    asked = before.asked
    if asked is None or asked.version != event.action or not isinstance(asked.event, ActionRequired):
        return f"the client did not answer before the deadline of what it was asked at version {event.action}"
    wanted, allowed = asked_for(asked.event.items, before.one), seconds_allowed(asked.event, asked.envelope)
    return f"at version {event.action} the client was asked for {wanted}, and nothing came within {allowed:,.0f} s"


_SAYS: Final[Mapping[type, Callable[[Any, _Before], str]]] = MappingProxyType(
    {
        Acquired: _acquired,
        Released: lambda event, before: _RELEASES[event.reason] + _lost(event, before),
        PolicyRecorded: lambda _event, _before: "decisions depend on it, and it was not recorded in this form before",
        ToolResultRecorded: _result,
        StepCommitted: _step,
        CompactionCommitted: _attempt,
        ContextPersisted: _attempt,
        RetryScheduled: _retry,
        TurnFailed: _failed,
        InterruptionFinished: _interrupted,
        ActionExpired: _expired,
        ActionExpiredTurnEnded: _expired,
        Reconciled: lambda event, _: f"its state was one that must not be, and was repaired: {error_name(event.error)}",
    }
)
"""What is said of an event that carries no decision out, by its type; of others it is who did it, and what."""

_OF_AN_ATTEMPT: Final = frozenset(
    {ToolResultRecorded, StepCommitted, CompactionCommitted, ContextPersisted, RetryScheduled, TurnFailed}
)
"""What comes of an attempt, and so of the decision to begin it."""


def causes(log: Iterable[Recorded]) -> Iterator[Cause]:
    """Yield where each event of a chat's log came from, given from its first event on; contents are not needed.

    Raises:
        InvalidValue: What is given are no events, or not those of one log.
    """
    before = _Before(None, None, None, {})
    for recorded in one_log(log):
        yield _cause(recorded, before)
        if isinstance(recorded.event, Effects):
            before.names.update((key, part.name) for key, part in recorded.event.tool_calls(recorded.version))
        if isinstance(recorded.event, AttemptStarted):
            before = before._replace(started=recorded.version)
        elif isinstance(recorded.event, Interrupting):
            before = before._replace(ended=recorded.version)
        elif isinstance(recorded.event, ActionRequired):
            before = before._replace(asked=recorded)


def _cause(recorded: Recorded, before: _Before) -> Cause:
    event, version, name = recorded.event, recorded.version, recorded.envelope.type
    taken = recorded_decision(event)
    if taken is not None:
        told = explain(taken.decision)
        about = _about(event, before)
        because = f"{told.because}: {about}" if about else told.because
        return Cause(version=version, event=name, because=because, decided_at=version, decision=told)
    says = _SAYS.get(type(event))
    if says is None:
        did = said_of_writer(recorded.envelope.actor, event, before.one)
        return Cause(version=version, event=name, because=did)
    decided = before.started if type(event) in _OF_AN_ATTEMPT and _of_attempt(event) else None
    return Cause(version=version, event=name, because=says(event, before), decided_at=decided)


def _about(event: Any, before: _Before) -> str:
    """Return the calls that a decision is about, with their tools' names."""
    if isinstance(event, ActionRequired):
        return asked_for((item for item in event.items if item.call), before.one)
    return before.called(event.calls) if isinstance(event, AttemptStarted) else ""


def _of_attempt(event: Any) -> bool:
    return event.attempt is not None
