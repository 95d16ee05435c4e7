"""A log as a script: which events came together, who made them, and what became of each attempt.

Events of one append are a group, and a group has one driver: somebody outside, a worker that takes the chat, its
holder, or what lets go of a chat whose runner is gone. What an attempt came to stands later in the log, and has to be
known when it starts: what its model streams must have come before whatever ends it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.rerunning.inverse import answer_in, comes_from_outside
from events import vocabulary as v
from events.effects import Interrupting
from events.envelope import Recorded
from events.ids import CallKey
from events.messages import Message, Step
from events.parts import ToolResultPart
from events.reasons import Reason
from events.records import AttemptKind, AttemptReport, Policy, ReleaseReason
from generation.decide import EMPTY_ANSWER
from generation.partials import Leftover

Driver: TypeAlias = Literal["outside", "acquire", "holder", "stray"]
"""Who makes the events of a group: see the module."""


class Group(Struct, frozen=True):
    """Events that were appended together."""

    events: tuple[Recorded, ...]

    @property
    def first(self) -> Recorded:
        """The first of them."""
        return self.events[0]

    @property
    def driver(self) -> Driver:
        """Who makes them."""
        event = self.first.event
        if comes_from_outside(event):
            return "outside"
        if isinstance(event, v.Acquired):
            return "acquire"
        released = self.released
        if released is not None and released.reason in ("fault", "capacity") and not self.results:
            return "stray"
        lost = any(isinstance(each.event, v.TurnFailed) and _by_loss(each.event) for each in self.events)
        return "stray" if lost or self.goes_on else "holder"

    @property
    def goes_on(self) -> bool:
        """Whether an interruption was finished and the chat is held still, with nothing begun.

        A runner begins with the queue in the same append: here there was none.
        """
        last = self.events[-1]
        return isinstance(last.event, v.InterruptionFinished) and last.envelope.dest == "running"

    @property
    def acquired(self) -> v.Acquired | None:
        """The acquisition among them."""
        return next((each.event for each in self.events if isinstance(each.event, v.Acquired)), None)

    @property
    def released(self) -> v.Released | None:
        """The release among them."""
        return next((each.event for each in self.events if isinstance(each.event, v.Released)), None)

    @property
    def started(self) -> Recorded | None:
        """The start of the attempt that is under way after them."""
        last = self.events[-1]
        return last if isinstance(last.event, v.AttemptStarted) else None

    @property
    def stop(self) -> ReleaseReason | None:
        """Why the worker was told to let the chat go; None where it was not, or had not its agent."""
        released = self.released
        return None if released is None or released.reason == "agent_not_here" else released.reason

    @property
    def results(self) -> tuple[v.ToolResultRecorded, ...]:
        """The results of calls among them."""
        return tuple(each.event for each in self.events if isinstance(each.event, v.ToolResultRecorded))


class Fate(Struct, frozen=True, kw_only=True):
    """What became of an attempt.

    Attributes:
        kind: Its kind.
        ended: The event that says so; None where the log ends before.
        beside: The events of the same append behind that.
        own: Whether it came to an end of its own: an answer, a summary, a context, a failure.
        message: What had come of an answer.
        report: What else is known of its call.
        calls: The calls that it started.
        results: Their results, those of calls that never began among them.
    """

    kind: AttemptKind
    ended: v.Event | None = None
    beside: tuple[v.Event, ...] = ()
    own: bool = False
    message: Message | None = None
    report: AttemptReport | None = None
    calls: tuple[CallKey, ...] = ()
    results: Mapping[CallKey, ToolResultPart] = {}

    @property
    def step(self) -> Step | None:
        """What is known of its call."""
        if self.message is not None and self.message.step is not None:
            return self.message.step
        return self.report.step if self.report is not None else None

    @property
    def ends(self) -> bool:
        """Whether what its model said came to an end, whatever became of it then."""
        if self.own or (self.message is not None and not self.message.interrupted):
            return True
        # A summary of what was erased meanwhile: the next attempt tells of it.
        dropped = self.kind == "compact" and isinstance(self.ended, v.AttemptStarted)
        return dropped and self.step is not None and self.step.finish_reason != "unknown"

    @property
    def begun(self) -> bool:
        """Whether its call was made, as far as the log says: else nothing is known of it but its start."""
        ends = (v.InterruptionFinished, v.Released, v.AttemptStarted, v.TurnFinished)
        if self.kind == "tools":
            return any(self._has_begun(call) for call in self.calls)
        if self.kind not in ("generate", "compact") or self.own or not isinstance(self.ended, ends):
            return True
        return self.step is not None

    def _has_begun(self, call: CallKey) -> bool:
        """Whether it is known of a call that it began."""
        result = self.results.get(call)
        if result is not None:
            return result.reason is not Reason.NOT_STARTED
        return not isinstance(self.ended, v.Released) or call in self.ended.unknown


class Script:
    """A log, cut into what happens one after the other.

    Args:
        log: All events of a chat, from the first one on.
    """

    def __init__(self, log: Sequence[Recorded]) -> None:
        self.log: Final = log
        self.groups: Final = tuple(_groups(log))
        self.policies: Final[dict[str, Policy]] = {
            each.event.digest: each.event.policy for each in log if isinstance(each.event, v.PolicyRecorded)
        }
        self._fates: Final = {
            each.version: _fate(log, place)
            for place, each in enumerate(log)
            if isinstance(each.event, v.AttemptStarted)
        }

    def event(self, version: int) -> v.Event | None:
        """Return the event of a version; None beyond the log's end."""
        return self.log[version - 1].event if 0 < version <= len(self.log) else None

    def fate(self, version: int) -> Fate | None:
        """Return what became of the attempt that the event of a version started; None where it started none."""
        return self._fates.get(version)

    def policy(self, version: int) -> str | None:
        """Return the digest of the policy that was held when the event after a version was made.

        None where there was none: the agent was not there.
        """
        event = self.event(version + 1)
        if isinstance(event, v.PolicyRecorded):
            return event.digest
        if isinstance(event, v.Released) and event.reason == "agent_not_here":
            return None
        decision = getattr(event, "decision", None)
        if decision is not None:
            return str(decision.policy)
        # Nothing was decided: any will do.
        return next(iter(self.policies), "")

    def left(self, version: int) -> Leftover:
        """Return what the attempt left whose holder was gone when the events after a version were made."""
        for each in islice(self.log, version, None):
            event = each.event
            if isinstance(event, v.AttemptStarted):
                return Leftover(report=event.cut)
            if isinstance(event, _TELL):
                return Leftover(message=_message(event), report=getattr(event, "report", None))
            if each.version > version + 1 and each.envelope.index == 0:
                break
        return Leftover()

    @property
    def context_timeout(self) -> float | None:
        """Seconds after which context sources were given up; None where none was."""
        for each in self.log:
            error = getattr(each.event, "error", None)
            found = _TOO_LATE.search(error.message.text) if error is not None and error.kind == "timeout" else None
            if found is not None:
                return float(found[1])
        return None

    @property
    def retry_unit(self) -> float:
        """Seconds that stood for one in the table of waits, where policies do not record it."""
        return 1.0

    def kept_models(self) -> frozenset[tuple[str, str]]:
        """Return the models, by provider and name, whose service kept responses to go on from."""
        steps = (
            message.step
            for each in self.log
            if isinstance(each.event, v.StepCommitted | v.InterruptionFinished)
            for message in each.event.added
        )
        return frozenset((step.provider, step.model) for step in steps if step is not None and step.kept is not None)


def _groups(log: Iterable[Recorded]) -> Iterator[Group]:
    group: list[Recorded] = []
    for each in log:
        if group and each.envelope.index == 0:
            yield Group(tuple(group))
            group = []
        group.append(each)
    if group:
        yield Group(tuple(group))


def _fate(log: Sequence[Recorded], place: int) -> Fate:
    started = log[place].event
    if not isinstance(started, v.AttemptStarted):
        raise TypeError(f"version {log[place].version} starts no attempt")
    results: dict[CallKey, ToolResultPart] = {}
    for at in range(place + 1, len(log)):
        ended = log[at].event
        if isinstance(ended, v.ToolResultRecorded):
            results[ended.result.call] = ended.result
        if not _ends_attempt(ended):
            continue
        return Fate(
            kind=started.kind,
            ended=ended,
            beside=tuple(_behind(log, at)),
            own=_is_own(ended, started.attempt),
            message=_message(ended),
            report=ended.cut if isinstance(ended, v.AttemptStarted) else getattr(ended, "report", None),
            calls=started.calls,
            results=results,
        )
    return Fate(kind=started.kind, calls=started.calls, results=results)


def _behind(log: Sequence[Recorded], at: int) -> Iterator[v.Event]:
    """Yield the events of the same append behind one."""
    for each in islice(log, at + 1, None):
        if each.envelope.index == 0:
            return
        yield each.event


_OUTCOMES: Final = (v.StepCommitted, v.CompactionCommitted, v.ContextPersisted, v.RetryScheduled, v.TurnFailed)
_TELL: Final = (v.InterruptionFinished, v.TurnFailed, v.TurnFinished, v.Released)
"""What may tell of an attempt whose holder is gone, beside the start of the next one."""
_TOO_LATE: Final = re.compile(r"gave nothing in (\S+) seconds")
_ENDS: Final = (
    *_OUTCOMES,
    v.TurnFinished,
    v.InterruptionFinished,
    v.Released,
    v.Acquired,
    v.AttemptStarted,
    v.ActionRequired,
    v.ChatAdopted,
    v.Reconciled,
)


def _ends_attempt(event: v.Event) -> bool:
    # An interruption of a dead holder's turn ends it at once.
    return isinstance(event, _ENDS) or (isinstance(event, Interrupting) and event.epoch is not None)


def _is_own(event: v.Event, attempt: int) -> bool:
    match event:
        case v.TurnFinished():
            return bool(event.decision.facts.get(EMPTY_ANSWER))
        case v.TurnFailed():
            return event.attempt == attempt and event.decision is None and not _by_loss(event)
        case _:
            return isinstance(event, _OUTCOMES) and event.attempt == attempt


def _by_loss(event: v.TurnFailed) -> bool:
    return event.error.kind == "worker_lost"


def _message(event: v.Event) -> Message | None:
    if isinstance(event, v.CompactionCommitted | v.ContextPersisted):
        return None
    return answer_in(getattr(event, "added", ()))
