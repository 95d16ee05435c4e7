"""Commands of workers: who holds the chat, attempts and their outcomes, ends of turns; of timers; repair."""

from __future__ import annotations

from chatstate.commands_base import Command, Fence
from events.content import Content
from events.ids import CallKey, WorkerId
from events.messages import Message
from events.parts import OnExpiry, ToolResultPart
from events.records import AttemptKind, AttemptReport, Decision, ErrorInfo, FinishCause, Policy, ReleaseReason, Spending


class Acquire(Command, frozen=True, kw_only=True):
    """Hold the chat, free or of a dead holder."""

    trigger = "acquire"
    worker: WorkerId
    release: str
    lease_dead: bool = False


class Release(Command, frozen=True, kw_only=True):
    """Let the chat go; calls that still run after the grace count as lost."""

    trigger = "release"
    fence: Fence
    reason: ReleaseReason
    report: AttemptReport | None = None


class RecordPolicy(Command, frozen=True, kw_only=True):
    """Record what decisions depend on, before the first one under it."""

    trigger = "record_policy"
    fence: Fence
    policy: Policy
    digest: str


class StartAttempt(Command, frozen=True, kw_only=True):
    """Start an effect; ``calls`` are those that it runs. ``cut`` is what an attempt cost that an edit cut before."""

    trigger = "start_attempt"
    fence: Fence
    kind: AttemptKind
    decision: Decision
    calls: tuple[CallKey, ...] = ()
    cut: AttemptReport | None = None


class RecordToolResult(Command, frozen=True, kw_only=True):
    """Record the result of a call of the running batch."""

    trigger = "record_tool_result"
    fence: Fence
    result: ToolResultPart


class CommitStep(Command, frozen=True, kw_only=True):
    """Commit the assistant message of a generate attempt, or (without a message) the recorded results of a batch.

    ``more``: model-only user messages after the answer, by which the turn goes on.
    """

    trigger = "commit_step"
    fence: Fence
    message: Message | None = None
    report: AttemptReport | None = None
    more: tuple[Message, ...] = ()


class CommitCompaction(Command, frozen=True, kw_only=True):
    """Commit a compaction boundary. ``details`` is what clients see as its result. Needs the transcript."""

    trigger = "commit_compaction"
    fence: Fence
    manual: bool
    summary: Content
    details: Content
    context_tokens: int | None = None
    report: AttemptReport | None = None


class PersistContext(Command, frozen=True, kw_only=True):
    """Write the collected context (a system message with a context mark) into history."""

    trigger = "persist_context"
    fence: Fence
    message: Message


class ScheduleRetry(Command, frozen=True, kw_only=True):
    """Try the failed model attempt again after ``delay_us``; the chat is let go until then."""

    trigger = "schedule_retry"
    fence: Fence
    delay_us: int
    error: ErrorInfo
    report: AttemptReport | None = None


class RequireAction(Command, frozen=True, kw_only=True):
    """Ask the client for what it owes: open calls and approvals, with ``budget`` the answer to a budget question.

    ``budget`` is what such a question is about. ``timeout_us`` and ``on_expiry`` hold of calls that have none of their
    own, and of a budget question. ``result_budget``: bytes that the output of one result may take; None for as many as
    come.
    """

    trigger = "require_action"
    fence: Fence
    decision: Decision
    timeout_us: int
    on_expiry: OnExpiry = "go_on"
    budget: Spending | None = None
    result_budget: int | None = None


class FinishTurn(Command, frozen=True, kw_only=True):
    """End the turn; the queue's head, if there is one, opens the next."""

    trigger = "finish_turn"
    fence: Fence
    cause: FinishCause
    decision: Decision
    report: AttemptReport | None = None


class FailTurn(Command, frozen=True, kw_only=True):
    """End the turn with an error. ``message``: what had come of an answer, which is kept and marked interrupted."""

    trigger = "fail_turn"
    fence: Fence
    error: ErrorInfo
    decision: Decision | None = None
    message: Message | None = None
    report: AttemptReport | None = None


class FinishInterruption(Command, frozen=True, kw_only=True):
    """End an interrupted turn with nothing, a partial answer, or the whole step that the interrupt overtook.

    The answer is that of the attempt under way, or after a takeover what the dead holder's attempt left.
    """

    trigger = "finish_interruption"
    fence: Fence
    message: Message | None = None
    report: AttemptReport | None = None


class ExpireAction(Command, frozen=True, kw_only=True):
    """The deadline of an action that says go_on has passed."""

    trigger = "expire_action"
    action: int


class ExpireActionEndTurn(Command, frozen=True, kw_only=True):
    """The deadline of an action that says end_turn has passed."""

    trigger = "expire_action_end_turn"
    action: int


class Reconcile(Command, frozen=True, kw_only=True):
    """Lead an invalid state to error."""

    trigger = "reconcile"
    error: ErrorInfo
