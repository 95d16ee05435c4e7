"""Events of workers: who holds the chat, attempts and their outcomes, ends of turns; of timers; repair."""

from __future__ import annotations

from events.effects import Effects, EventBase
from events.ids import CallKey, WorkerId
from events.parts import OnExpiry, ToolResultPart
from events.records import (
    ActionItem,
    AttemptKind,
    AttemptReport,
    Decision,
    ErrorInfo,
    FinishCause,
    Policy,
    ReleaseReason,
)


class Acquired(EventBase, frozen=True, kw_only=True):
    """A worker holds the chat. ``takeover``: from a dead holder, whose ``unknown`` calls may have run.

    ``again``: calls that it had started, too, and that are run once more.
    """

    type = "acquired"
    trigger = "acquire"
    worker: WorkerId
    epoch: int
    release: str
    takeover: bool = False
    unknown: tuple[CallKey, ...] = ()
    again: tuple[CallKey, ...] = ()
    report: AttemptReport | None = None


class Released(EventBase, frozen=True, kw_only=True):
    """The holder let the chat go. ``unknown`` calls still ran then; so did those of ``again``, which run once more."""

    type = "released"
    trigger = "release"
    reason: ReleaseReason
    unknown: tuple[CallKey, ...] = ()
    again: tuple[CallKey, ...] = ()
    report: AttemptReport | None = None


class PolicyRecorded(EventBase, frozen=True, kw_only=True):
    """The policy under which decisions are taken from now on."""

    type = "policy_recorded"
    trigger = "record_policy"
    digest: str
    policy: Policy


class AttemptStarted(EventBase, frozen=True, kw_only=True):
    """An effect is about to begin; for tools, ``calls`` are those it starts."""

    type = "attempt_started"
    trigger = "start_attempt"
    attempt: int
    kind: AttemptKind
    decision: Decision
    calls: tuple[CallKey, ...] = ()
    cut: AttemptReport | None = None


class ToolResultRecorded(EventBase, frozen=True, kw_only=True):
    """A tool of the running batch finished; its result waits for the batch's commit."""

    type = "tool_result_recorded"
    trigger = "record_tool_result"
    attempt: int
    result: ToolResultPart


class StepCommitted(Effects, frozen=True, kw_only=True):
    """An assistant message, or the results of a batch of tools, entered history."""

    type = "step_committed"
    trigger = "commit_step"
    attempt: int
    report: AttemptReport | None = None


class CompactionCommitted(Effects, frozen=True, kw_only=True):
    """A compaction boundary entered history."""

    type = "compaction_committed"
    trigger = "commit_compaction"
    attempt: int
    manual: bool
    context_tokens: int | None = None
    report: AttemptReport | None = None


class ContextPersisted(Effects, frozen=True, kw_only=True):
    """The context of the agent's context source entered history; empty where the source has none."""

    type = "context_persisted"
    trigger = "persist_context"
    attempt: int
    source: str
    revision: str


class RetryScheduled(EventBase, frozen=True, kw_only=True):
    """The attempt under way failed and is tried again at ``not_before`` (microseconds UTC)."""

    type = "retry_scheduled"
    trigger = "schedule_retry"
    attempt: int
    delay_us: int
    not_before: int
    error: ErrorInfo
    report: AttemptReport | None = None


class ActionRequired(EventBase, frozen=True, kw_only=True):
    """The client owes something until ``deadline`` (microseconds UTC).

    ``result_budget``: bytes that the output of one of its results may take.
    """

    type = "action_required"
    trigger = "require_action"
    decision: Decision
    deadline: int
    on_expiry: OnExpiry
    items: tuple[ActionItem, ...]
    result_budget: int | None = None


class TurnFinished(Effects, frozen=True, kw_only=True):
    """The turn ended; the queue's head was promoted if there is one."""

    type = "turn_finished"
    trigger = "finish_turn"
    cause: FinishCause
    decision: Decision
    report: AttemptReport | None = None


class TurnFailed(Effects, frozen=True, kw_only=True):
    """The turn failed: by a decision, or by the ``error`` of an attempt. ``unknown`` calls still ran then.

    So did those of ``again``, which would be run once more if the turn were resumed.

    ``added`` is what had come of an answer, marked interrupted, with answers to its calls.
    """

    type = "turn_failed"
    trigger = "fail_turn"
    error: ErrorInfo
    attempt: int | None = None
    decision: Decision | None = None
    report: AttemptReport | None = None
    unknown: tuple[CallKey, ...] = ()
    again: tuple[CallKey, ...] = ()


class InterruptionFinished(Effects, frozen=True, kw_only=True):
    """The holder ended the turn: with nothing, a partial answer, or the whole step that the interrupt overtook."""

    type = "interruption_finished"
    trigger = "finish_interruption"
    attempt: int | None = None
    report: AttemptReport | None = None


class ActionExpired(Effects, frozen=True, kw_only=True):
    """The client did not answer in time; the model goes on."""

    type = "action_expired"
    trigger = "expire_action"
    action: int


class ActionExpiredTurnEnded(Effects, frozen=True, kw_only=True):
    """The client did not answer in time; the turn ends."""

    type = "action_expired_turn_ended"
    trigger = "expire_action_end_turn"
    action: int


class Reconciled(Effects, frozen=True, kw_only=True):
    """An invalid state was repaired."""

    type = "reconciled"
    trigger = "reconcile"
    error: ErrorInfo
    epoch: int | None = None
