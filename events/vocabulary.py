"""The event vocabulary: one frozen struct per transition, in one table, and their closed union.

Event type and trigger correspond one to one. An event lists its effects plainly (``Effects``), so that most of the
reducer is one function for all. The state after it stands in the envelope (``dest``): an event says what happened, the
machine said where it leads.

The tag of a type and its fields are stored for ever: a changed meaning is a new schema number and an upcasting step.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import field

from events.content import Content
from events.effects import Effects, EventBase, Interrupting
from events.ids import CallKey, MessageId, WorkerId
from events.messages import QueuedMessage
from events.parts import ToolResultPart
from events.records import (
    ActionItem,
    ApprovalAnswer,
    AttemptKind,
    AttemptReport,
    BudgetAnswer,
    Decision,
    ErrorInfo,
    FinishCause,
    OnExpiry,
    Origin,
    Policy,
    ReleaseReason,
)


class ChatCreated(Effects, frozen=True, kw_only=True):
    """A chat begins. ``chat`` is the id it was created under; ``flags`` are the behaviour flags in force."""

    type = "chat_created"
    trigger = "create"
    chat: str
    owner: str
    agent: str
    release: str
    flags: tuple[int, ...] = ()
    title: Content | None = None
    labels: dict[str, str] = field(default_factory=dict)
    model: str | None = None
    effort: str | None = None
    parent: str | None = None


class MessageSent(Effects, frozen=True, kw_only=True):
    """A user's message, queued where the chat is busy. ``model`` and ``effort`` hold from now on where it was not."""

    type = "message_sent"
    trigger = "send"
    model: str | None = None
    effort: str | None = None


class MessageSentInterrupting(Interrupting, frozen=True, kw_only=True):
    """A user's message that ends the current turn; ``model`` and ``effort`` as in ``MessageSent``."""

    type = "message_sent_interrupting"
    trigger = "send_interrupt"
    model: str | None = None
    effort: str | None = None


class MessageEdited(Effects, frozen=True, kw_only=True):
    """A user's message was replaced; it and all after it left history, the queue was cleared."""

    type = "message_edited"
    trigger = "edit"


class QueuedMessageEdited(EventBase, frozen=True, kw_only=True):
    """A queued message was rewritten in its place."""

    type = "queued_message_edited"
    trigger = "edit_queued"
    id: MessageId
    message: QueuedMessage


class QueueReordered(Effects, frozen=True, kw_only=True):
    """The queue has a new order."""

    type = "queue_reordered"
    trigger = "reorder_queue"


class QueuedMessageDeleted(Effects, frozen=True, kw_only=True):
    """A queued message was deleted."""

    type = "queued_message_deleted"
    trigger = "delete_queued"


class QueuedMessagePromoted(Interrupting, frozen=True, kw_only=True):
    """A queued message moved to the head, and the current turn ends."""

    type = "queued_message_promoted"
    trigger = "promote_queued"


class TurnInterrupted(Interrupting, frozen=True, kw_only=True):
    """The current turn ends now."""

    type = "turn_interrupted"
    trigger = "interrupt"


class ResultsSubmitted(Effects, frozen=True, kw_only=True):
    """The client answered the open actions: results (in ``added``), approvals, or a budget question."""

    type = "results_submitted"
    trigger = "submit_results"
    action: int
    approvals: tuple[ApprovalAnswer, ...] = ()
    budget: BudgetAnswer | None = None


class TurnResumed(Effects, frozen=True, kw_only=True):
    """The turn that history owes runs again."""

    type = "turn_resumed"
    trigger = "resume"


class CompactionRequested(Effects, frozen=True, kw_only=True):
    """A manual compaction is owed."""

    type = "compaction_requested"
    trigger = "compact"
    hint: Content | None = None


class ContextCleared(Effects, frozen=True, kw_only=True):
    """A clear boundary was written."""

    type = "context_cleared"
    trigger = "clear"


class ChatArchived(EventBase, frozen=True, kw_only=True):
    """The chat was put away."""

    type = "chat_archived"
    trigger = "archive"


class ChatUnarchived(EventBase, frozen=True, kw_only=True):
    """The chat was taken out again."""

    type = "chat_unarchived"
    trigger = "unarchive"


class ChatForked(EventBase, frozen=True, kw_only=True):
    """A chat begins as a copy of another's history. ``owed`` says whether the copied history owes a turn."""

    type = "chat_forked"
    trigger = "fork"
    chat: str
    owner: str
    agent: str
    release: str
    origin: Origin
    owed: bool
    flags: tuple[int, ...] = ()
    title: Content | None = None
    labels: dict[str, str] = field(default_factory=dict)
    model: str | None = None
    effort: str | None = None


class MessagesImported(Effects, frozen=True, kw_only=True):
    """Messages of a fork's origin, with their calls renamed to this chat's."""

    type = "messages_imported"
    trigger = "import_messages"


class TitleChanged(EventBase, frozen=True, kw_only=True):
    """The title changed."""

    type = "title_changed"
    trigger = "set_title"
    title: Content | None = None


class LabelsChanged(EventBase, frozen=True, kw_only=True):
    """The labels are now these."""

    type = "labels_changed"
    trigger = "set_labels"
    labels: dict[str, str] = field(default_factory=dict)


class ModelChanged(EventBase, frozen=True, kw_only=True):
    """The model and effort for turns from now on; absent means the agent's own."""

    type = "model_changed"
    trigger = "set_model"
    model: str | None = None
    effort: str | None = None


class AgentChanged(EventBase, frozen=True, kw_only=True):
    """Another agent takes the turns from now on."""

    type = "agent_changed"
    trigger = "set_agent"
    agent: str


class PinnedChanged(EventBase, frozen=True, kw_only=True):
    """The chat was pinned or unpinned."""

    type = "pinned_changed"
    trigger = "set_pinned"
    pinned: bool


class RetentionChanged(EventBase, frozen=True, kw_only=True):
    """How long the chat is kept after its last change, in microseconds; absent means without limit."""

    type = "retention_changed"
    trigger = "set_retention"
    retention_us: int | None = None


class ContentErased(EventBase, frozen=True, kw_only=True):
    """The content of these messages was erased from the log."""

    type = "content_erased"
    trigger = "erase"
    messages: tuple[MessageId, ...]


class ChatAdopted(EventBase, frozen=True, kw_only=True):
    """A foreign chat was taken over here; a holder in its log counts as dead."""

    type = "chat_adopted"
    trigger = "adopt"
    epoch: int


class CompactionUndone(EventBase, frozen=True, kw_only=True):
    """The newest compaction boundary was taken back; what it compressed counts again."""

    type = "compaction_undone"
    trigger = "uncompact"
    boundary: MessageId


class Acquired(EventBase, frozen=True, kw_only=True):
    """A worker holds the chat. ``takeover``: from a dead holder, whose ``unknown`` calls may have run."""

    type = "acquired"
    trigger = "acquire"
    worker: WorkerId
    epoch: int
    release: str
    takeover: bool = False
    unknown: tuple[CallKey, ...] = ()
    report: AttemptReport | None = None


class Released(EventBase, frozen=True, kw_only=True):
    """The holder let the chat go. ``unknown`` calls still ran then."""

    type = "released"
    trigger = "release"
    reason: ReleaseReason
    unknown: tuple[CallKey, ...] = ()
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
    """The client owes something until ``deadline`` (microseconds UTC)."""

    type = "action_required"
    trigger = "require_action"
    decision: Decision
    deadline: int
    on_expiry: OnExpiry
    items: tuple[ActionItem, ...]


class TurnFinished(Effects, frozen=True, kw_only=True):
    """The turn ended; the queue's head was promoted if there is one."""

    type = "turn_finished"
    trigger = "finish_turn"
    cause: FinishCause
    decision: Decision
    report: AttemptReport | None = None


class TurnFailed(Effects, frozen=True, kw_only=True):
    """The turn failed: by a decision, or by the ``error`` of an attempt. ``unknown`` calls still ran then.

    ``added`` is what had come of an answer, marked interrupted, with answers to its calls.
    """

    type = "turn_failed"
    trigger = "fail_turn"
    error: ErrorInfo
    attempt: int | None = None
    decision: Decision | None = None
    report: AttemptReport | None = None
    unknown: tuple[CallKey, ...] = ()


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


Event: TypeAlias = (
    ChatCreated
    | MessageSent
    | MessageSentInterrupting
    | MessageEdited
    | QueuedMessageEdited
    | QueueReordered
    | QueuedMessageDeleted
    | QueuedMessagePromoted
    | TurnInterrupted
    | ResultsSubmitted
    | TurnResumed
    | CompactionRequested
    | ContextCleared
    | ChatArchived
    | ChatUnarchived
    | ChatForked
    | MessagesImported
    | TitleChanged
    | LabelsChanged
    | ModelChanged
    | AgentChanged
    | PinnedChanged
    | RetentionChanged
    | ContentErased
    | ChatAdopted
    | CompactionUndone
    | Acquired
    | Released
    | PolicyRecorded
    | AttemptStarted
    | ToolResultRecorded
    | StepCommitted
    | CompactionCommitted
    | ContextPersisted
    | RetryScheduled
    | ActionRequired
    | TurnFinished
    | TurnFailed
    | InterruptionFinished
    | ActionExpired
    | ActionExpiredTurnEnded
    | Reconciled
)

EVENT_TYPES: Final[dict[str, type[Event]]] = {cls.type: cls for cls in Event.__args__}
"""Stored tag -> class, in the order of the union."""


ENDS_TURN: Final = (
    MessageSentInterrupting,
    MessageEdited,
    QueuedMessagePromoted,
    TurnInterrupted,
    ContextCleared,
    TurnFinished,
    TurnFailed,
    InterruptionFinished,
    ActionExpiredTurnEnded,
    Reconciled,
)
"""Events that end a turn (the interrupting ones only where they do not leave that to the holder)."""
