"""Audit: walk a log and say where a step was not legal or a state not sound.

Needs no configuration and reads facts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from chatstate.classify import STATUS_OF, X, classify
from chatstate.invariants import violations
from chatstate.table import TABLE
from events import vocabulary as v
from events.control import lost_calls
from events.effects import Effects
from events.envelope import Recorded
from events.given import checked_events
from events.ids import message_id
from events.reducer import evolve
from events.replay import ReplayStep
from events.state import ChatState, initial_state

OUTCOMES: Final = (
    v.StepCommitted,
    v.ToolResultRecorded,
    v.CompactionCommitted,
    v.ContextPersisted,
    v.RetryScheduled,
)
"""Events that are the outcome of an attempt, and only of the one under way."""


class Finding(Struct, frozen=True):
    """What is wrong, and the version of the event that made it so."""

    version: int
    problem: str


class Auditor:
    """Audits a log event by event.

    Attributes:
        state: The state after the events so far.
    """

    def __init__(self) -> None:
        self.state: ChatState = initial_state()
        self._expected = 1

    def take(self, recorded: Recorded) -> Iterator[Finding]:
        """Fold the next event, then yield what is wrong with it. It is folded once the first finding is asked for."""
        step = ReplayStep(self.state, recorded, evolve(self.state, recorded))
        self.state = step.after
        version, expected = recorded.version, self._expected
        self._expected = version + 1
        if version != expected:
            yield Finding(version, f"version {version} follows {expected - 1}")
        # What an edit removes cannot be checked later; all else of history is checked once, at the end, so that the
        # cost stays linear in the log.
        removes = isinstance(recorded.event, v.MessageEdited | v.CompactionUndone)
        before = violations(step.before) if removes else []
        for problem in (*before, *step_problems(step)):
            yield Finding(version, problem)

    def end(self) -> Iterator[Finding]:
        """Yield what is wrong with the history that the log leaves."""
        if self._expected == 1:
            return
        control_only = violations(self.state, history=False)
        for problem in violations(self.state):
            if problem not in control_only:
                yield Finding(self._expected - 1, problem)


def audit(events: Iterable[Recorded]) -> Iterator[Finding]:
    """Yield what is wrong in a log, in order; nothing for every log that the engine wrote.

    Raises:
        InvalidValue: What is given are no events.
    """
    auditor = Auditor()
    for recorded in checked_events(events):
        yield from auditor.take(recorded)
    yield from auditor.end()


def step_problems(step: ReplayStep) -> Iterator[str]:
    """Yield what is wrong with one step of a log: the transition, its fences, the control after it.

    History is left to the whole audit: looking through it at every step would cost its length each time.
    """
    yield from _legal(step)
    yield from _fenced(step)
    yield from _run_once(step)
    yield from _timely(step)
    yield from _effects(step)
    yield from violations(step.after, history=False)


def _legal(step: ReplayStep) -> Iterator[str]:
    envelope, trigger = step.recorded.envelope, step.recorded.event.trigger
    before, after = classify(step.before.control), classify(step.after.control)
    if before is not X.INVALID and envelope.source != STATUS_OF[before]:
        yield f"the event says it left {envelope.source}, the state before was {STATUS_OF[before]}"
    cell = TABLE[before].get(trigger)
    if cell is None:
        yield f"{trigger} is not allowed in {before}"
    elif after not in cell.outcomes:
        yield f"{trigger} leads from {before} to {', '.join(cell.outcomes)}, not to {after}"
    if envelope.recorded_at < step.before.control.recorded_at:
        yield "recorded_at goes back behind the event before"
    if step.after.control.epoch < step.before.control.epoch:
        yield f"the epoch fell from {step.before.control.epoch} to {step.after.control.epoch}"


def _fenced(step: ReplayStep) -> Iterator[str]:
    event, control = step.recorded.event, step.before.control
    running = control.running.attempt if control.running is not None else None
    if isinstance(event, v.AttemptStarted) and event.attempt != control.attempt + 1:
        yield f"attempt {event.attempt} follows attempt {control.attempt}"
    if isinstance(event, OUTCOMES) and event.attempt != running:
        yield f"an outcome of attempt {event.attempt} was recorded while the one under way was {running}"
    if isinstance(event, v.Acquired) and event.epoch != control.epoch + 1:
        yield f"epoch {event.epoch} follows epoch {control.epoch}"
    decision = v.decision_of(event)
    if decision is not None and decision.policy != control.policy:
        yield "the decision was taken under a policy that is not the recorded one"


def _run_once(step: ReplayStep) -> Iterator[str]:
    """Yield calls that were run again though they must not be, or lost though they could be asked for."""
    event, calls = step.recorded.event, step.before.control.indexes.open_calls
    if isinstance(event, v.AttemptStarted):
        again = {call.key for call in calls if call.recorded}.intersection(event.calls)
        yield from (f"call {key} was started again, and its result is recorded" for key in sorted(again))
    leaves = isinstance(event, v.Released | v.TurnFailed) or (isinstance(event, v.Acquired) and event.takeover)
    if isinstance(event, v.Released | v.TurnFailed | v.Acquired) and leaves:
        lost = {call.key for call in lost_calls(calls)}
        yield from (
            f"call {key} ran when its holder went, and nothing says so" for key in sorted(lost - {*event.unknown})
        )
        running = {call.key for call in calls if call.runs}
        yield from (f"call {key} is said to be lost, and did not run" for key in sorted({*event.unknown} - running))


def _timely(step: ReplayStep) -> Iterator[str]:
    event, control, at = step.recorded.event, step.before.control, step.recorded.envelope.recorded_at
    if isinstance(event, v.Acquired) and control.not_before is not None and at < control.not_before:
        yield "it was acquired before the time of its retry"
    if isinstance(event, v.ResultsSubmitted | v.ActionExpired | v.ActionExpiredTurnEnded):
        action = control.action
        if action is None or event.action != action.id:
            yield f"action {event.action} is not the one that was open"
        elif not isinstance(event, v.ResultsSubmitted) and at < action.deadline:
            yield f"action {event.action} expired before its deadline"


def _effects(step: ReplayStep) -> Iterator[str]:
    event, control = step.recorded.event, step.before.control
    if not isinstance(event, Effects):
        return
    if isinstance(event, v.TurnFailed) and any(m.role == "assistant" and not m.interrupted for m in event.added):
        yield "a failed turn keeps an answer that is not marked interrupted"
    if event.answers and event.removed_from is None:
        known = {call.key: call for call in control.indexes.open_calls}
        for answer in event.answers:
            if answer.call not in known:
                yield f"call {answer.call} is answered and was not open"
            elif answer.reason is None and not known[answer.call].recorded:
                yield f"call {answer.call} is answered by a result that was not recorded"
    first = len(event.answers) + len(event.added)
    queued = {item.id for item in control.queue}
    queued |= {message_id(step.recorded.version, first + place) for place in range(len(event.queued))}
    for target in (*event.dequeued, *event.promoted, *(event.queue_order or ())):
        if target not in queued:
            yield f"message {target} was not queued"
