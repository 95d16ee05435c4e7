"""What events of workers do beside their plain effects (``events.vocabulary_workers``)."""

from __future__ import annotations

from typing import Final

from events import vocabulary_workers as v
from events.control import RunningAttempt
from events.draft import Draft
from events.envelope import Envelope
from events.ids import CallKey
from events.indexes import mark_calls
from events.parts import ToolResultPart
from events.reasons import Reason
from events.records import MODEL_KINDS, OpenAction, RetryState, share_policy, sole_policy
from events.reducer_shared import Specials, spend
from events.sharing import share_name


def _lose_calls(draft: Draft, unknown: tuple[CallKey, ...], again: tuple[CallKey, ...]) -> None:
    # What ran on a worker that is gone or gave up: some outcomes are unknown for good, the rest starts anew, and where
    # the tool can be asked what became of a call, it is asked first. Until then all of it may have happened.
    for call in unknown:
        draft.record_result(ToolResultPart(call=call, is_error=True, reason=Reason.WORKER_LOST))
    indexes = draft.control.indexes
    if not indexes.open_calls:
        return
    restart = frozenset(call.key for call in indexes.open_calls if call.runs)
    if restart:
        asked = frozenset(call.key for call in indexes.open_calls if call.runs and call.reconcile)
        indexes.open_calls = mark_calls(indexes.open_calls, restart, started=False)
        indexes.open_calls = mark_calls(indexes.open_calls, asked.union(again), possibly_done=True)


def _acquired(draft: Draft, event: v.Acquired, _: Envelope) -> None:
    control = draft.control
    control.holder, control.epoch = event.worker, event.epoch
    control.takeovers += event.takeover
    control.running = None
    spend(draft, event.report)
    _lose_calls(draft, event.unknown, event.again)


def _released(draft: Draft, event: v.Released, _: Envelope) -> None:
    # A runner that died counts like a worker that did: the third on one history fails the turn.
    draft.control.takeovers += event.reason == "fault"
    spend(draft, event.report)
    _lose_calls(draft, event.unknown, event.again)


def _policy(draft: Draft, event: v.PolicyRecorded, _: Envelope) -> None:
    draft.control.policy = share_name(event.digest)
    if draft.loaded and not draft.policies:
        draft.policies = sole_policy(event.digest, event.policy)
    elif draft.loaded:
        draft.own("policies")[event.digest] = share_policy(event.digest, event.policy)


def _attempt(draft: Draft, event: v.AttemptStarted, envelope: Envelope) -> None:
    control = draft.control
    spend(draft, event.cut)
    control.attempt = event.attempt
    control.model_attempts += event.kind in MODEL_KINDS
    control.running = RunningAttempt(attempt=event.attempt, kind=event.kind, started_at=envelope.recorded_at)
    if event.calls:
        control.indexes.open_calls = mark_calls(control.indexes.open_calls, frozenset(event.calls), started=True)


def _result(draft: Draft, event: v.ToolResultRecorded, _: Envelope) -> None:
    draft.record_result(event.result)


def _committed(draft: Draft, event: v.StepCommitted, _: Envelope) -> None:
    spend(draft, event.report, event.added)


def _compacted(draft: Draft, event: v.CompactionCommitted, _: Envelope) -> None:
    spend(draft, event.report)
    # A boundary that was written for another reason serves a request all the same.
    if event.manual or draft.control.compaction == "requested":
        draft.control.compaction = "committed"


def _context_persisted(draft: Draft, _event: v.ContextPersisted, envelope: Envelope) -> None:
    # What was said before it was collected is settled by it. What came while it was collected may be about a newer one.
    control = draft.control
    began = control.running.started_at if control.running is not None else envelope.recorded_at
    if control.context_stale_since is not None and control.context_stale_since <= began:
        control.context_stale_since = None
    if control.context_refresh_at is not None and control.context_refresh_at <= began:
        control.context_refresh_at = None


def _break_chain(draft: Draft, event: v.RetryScheduled | v.TurnFailed) -> None:
    step = event.report.step if event.report is not None else None
    if event.error.chain_broken and step is not None and step.continued is not None:
        draft.control.lost_response = step.continued


def _retry(draft: Draft, event: v.RetryScheduled, _: Envelope) -> None:
    control = draft.control
    _break_chain(draft, event)
    control.not_before = event.not_before
    control.retry = RetryState(attempt=event.attempt, delay_us=event.delay_us, at=event.not_before, error=event.error)
    spend(draft, event.report)


def _action(draft: Draft, event: v.ActionRequired, envelope: Envelope) -> None:
    draft.control.action = OpenAction(
        id=envelope.version,
        deadline=event.deadline,
        on_expiry=event.on_expiry,
        items=event.items,
        result_budget=event.result_budget,
    )


def _finished(draft: Draft, event: v.TurnFinished, _: Envelope) -> None:
    control = draft.control
    if event.cause in ("complete", "stop_after_tool"):
        control.owed = False
    control.running = None
    spend(draft, event.report)


def _failed(draft: Draft, event: v.TurnFailed, _: Envelope) -> None:
    draft.control.last_error = event.error
    _break_chain(draft, event)
    spend(draft, event.report, event.added)
    _lose_calls(draft, event.unknown, event.again)


def _interruption_finished(draft: Draft, event: v.InterruptionFinished, _: Envelope) -> None:
    control = draft.control
    control.interrupting = False
    control.running = None
    spend(draft, event.report, event.added)


def _expired(draft: Draft, _event: v.ActionExpired, _: Envelope) -> None:
    draft.control.owed = True


def _reconciled(draft: Draft, event: v.Reconciled, _: Envelope) -> None:
    control = draft.control
    control.archived = False
    control.last_error = event.error
    if event.epoch is not None:
        control.epoch = event.epoch


SPECIAL: Final[Specials] = {
    v.Acquired: _acquired,
    v.Released: _released,
    v.PolicyRecorded: _policy,
    v.AttemptStarted: _attempt,
    v.ToolResultRecorded: _result,
    v.StepCommitted: _committed,
    v.CompactionCommitted: _compacted,
    v.ContextPersisted: _context_persisted,
    v.RetryScheduled: _retry,
    v.ActionRequired: _action,
    v.TurnFinished: _finished,
    v.TurnFailed: _failed,
    v.InterruptionFinished: _interruption_finished,
    v.ActionExpired: _expired,
    v.Reconciled: _reconciled,
}
