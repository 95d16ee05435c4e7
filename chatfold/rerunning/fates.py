"""What became of each attempt, as its log tells: known here when the attempt starts.

What its model streams must have come before whatever ends it, and that stands later in the log. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from chatfold.rerunning.inverse import answer_in
from events import vocabulary as v
from events.effects import Interrupting
from events.envelope import Recorded
from events.ids import CallKey
from events.messages import Message, Step
from events.parts import ToolResultPart
from events.reasons import Reason
from events.records import MODEL_KINDS, AttemptKind, AttemptReport
from generation.decide import EMPTY_ANSWER


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
        before: Those of its calls that an attempt before had started, and whose tool was asked what became of them.
    """

    kind: AttemptKind
    ended: v.Event | None = None
    beside: tuple[v.Event, ...] = ()
    own: bool = False
    message: Message | None = None
    report: AttemptReport | None = None
    calls: tuple[CallKey, ...] = ()
    results: Mapping[CallKey, ToolResultPart] = {}
    before: frozenset[CallKey] = frozenset()

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
        # A summary of what was erased meanwhile, or an answer to what was edited away: the next attempt tells of it.
        dropped = self.kind in MODEL_KINDS and isinstance(self.ended, v.AttemptStarted)
        return dropped and self.step is not None and self.step.finish_reason != "unknown"

    @property
    def begun(self) -> bool:
        """Whether its call was made, as far as the log says: else nothing is known of it but its start."""
        ends = (v.InterruptionFinished, v.Released, v.AttemptStarted, v.TurnFinished)
        if self.kind == "tools":
            return any(self._has_begun(call) for call in self.calls)
        if self.kind not in MODEL_KINDS or self.own or not isinstance(self.ended, ends):
            return True
        return self.step is not None

    def _has_begun(self, call: CallKey) -> bool:
        """Whether it is known of a call that it began."""
        result = self.results.get(call)
        if result is not None:
            # That a call did not begin, which might have before, is known by having asked its tool.
            return result.reason is not Reason.NOT_STARTED or call in self.before
        return not isinstance(self.ended, v.Released) or call in self.ended.unknown


def fates(log: Sequence[Recorded]) -> Iterator[tuple[int, Fate]]:
    """Yield the fate of each attempt of a log, with the version of its start."""
    started: set[CallKey] = set()
    for place, each in enumerate(log):
        if isinstance(each.event, v.AttemptStarted):
            fate = _fate(log, place, each.event)
            yield each.version, replace(fate, before=started.intersection(fate.calls)) if fate.calls else fate
            started.update(fate.calls)


def _fate(log: Sequence[Recorded], place: int, started: v.AttemptStarted) -> Fate:
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
            message=kept_message(ended),
            report=ended.cut if isinstance(ended, v.AttemptStarted) else getattr(ended, "report", None),
            calls=started.calls,
            results=results,
        )
    return Fate(kind=started.kind, calls=started.calls, results=results)


def _behind(log: Sequence[Recorded], at: int) -> Iterator[v.Event]:
    """Yield the events of the same append behind one."""
    for place in range(at + 1, len(log)):
        if log[place].envelope.index == 0:
            return
        yield log[place].event


_OUTCOMES: Final = (v.StepCommitted, v.CompactionCommitted, v.ContextPersisted, v.RetryScheduled, v.TurnFailed)
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
            return event.attempt == attempt and event.decision is None and not by_loss(event)
        case _:
            return isinstance(event, _OUTCOMES) and event.attempt == attempt


def by_loss(event: v.TurnFailed) -> bool:
    """Whether a turn failed because its workers were lost."""
    return event.error.kind == "worker_lost"


def kept_message(event: v.Event) -> Message | None:
    """Return what an event keeps of the answer of the attempt that it ends; None where it keeps nothing."""
    if isinstance(event, v.CompactionCommitted | v.ContextPersisted):
        return None
    return answer_in(getattr(event, "added", ()))
