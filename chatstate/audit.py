"""Audit: walk a log and say where a step was not legal or a state not sound.

Needs no configuration and reads facts alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from chatstate.classify import STATUS_OF, X, classify
from chatstate.invariants import violations
from chatstate.table import TABLE
from events.envelope import Recorded
from events.replay import ReplayStep, replay
from events.vocabulary import AttemptStarted, CompactionUndone, MessageEdited, StepCommitted, ToolResultRecorded


class Finding(Struct, frozen=True):
    """What is wrong, and the version of the event that made it so."""

    version: int
    problem: str


def audit(events: Iterable[Recorded]) -> Iterator[Finding]:
    """Yield what is wrong in a log, in order; nothing for every log that the engine wrote."""
    expected = 1
    last: ReplayStep | None = None
    for step in replay(events):
        last = step
        version = step.recorded.version
        if version != expected:
            yield Finding(version, f"version {version} follows {expected - 1}")
        expected = version + 1
        # What an edit removes cannot be checked later; all else of history is checked once, at the end, so that the
        # cost stays linear in the log.
        removes = isinstance(step.recorded.event, MessageEdited | CompactionUndone)
        before = violations(step.before) if removes else []
        for problem in (*before, *step_problems(step)):
            yield Finding(version, problem)
    if last is not None:
        control_only = violations(last.after, history=False)
        for problem in violations(last.after):
            if problem not in control_only:
                yield Finding(last.recorded.version, problem)


def step_problems(step: ReplayStep) -> Iterator[str]:
    """Yield what is wrong with one step of a log: the transition, its fences, the control after it.

    History is left to the whole audit: looking through it at every step would cost its length each time.
    """
    yield from _legal(step)
    yield from _fenced(step)
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
    if isinstance(event, AttemptStarted) and event.attempt != control.attempt + 1:
        yield f"attempt {event.attempt} follows attempt {control.attempt}"
    decision = getattr(event, "decision", None)
    if decision is not None and decision.policy != control.policy:
        yield "the decision was taken under a policy that is not the recorded one"
    if isinstance(event, StepCommitted | ToolResultRecorded) and event.attempt != control.attempt:
        yield f"an outcome of attempt {event.attempt} was recorded while attempt {control.attempt} was under way"
    answers = getattr(event, "answers", ())
    known = {call.key: call for call in control.indexes.open_calls}
    for answer in answers:
        if answer.reason is None and (answer.call not in known or not known[answer.call].recorded):
            yield f"call {answer.call} is answered by a result that was not recorded"
