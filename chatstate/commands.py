"""Commands: one typed input per transition.

A command carries what cannot be known from the state: texts, limits, database facts (is the holder's lease dead?),
fences. Times are microseconds, UTC where they are points in time.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from events.content import Content
from events.ids import CallKey, ChatId, MessageId, WorkerId
from events.messages import Message, QueuedMessage
from events.parts import ToolResultPart
from events.records import (
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

QUEUE_LIMIT = 20
"""Messages that a queue holds unless the command says otherwise."""


class Command(Struct, frozen=True, kw_only=True, gc=False):
    """Base of all commands; ``trigger`` names the machine's trigger."""

    trigger: ClassVar[str]


class Fence(Struct, frozen=True, kw_only=True, gc=False):
    """What a worker believes.

    A command whose fence does not hold is refused (StaleFence). All but release and record policy must name the
    history; the outcomes of an attempt must name it too.
    """

    epoch: int
    history_version: int | None = None
    attempt: int | None = None


class SubmittedResult(Struct, frozen=True, kw_only=True):
    """A client's result of a call. ``problem`` says why the given value is not JSON that can be stored."""

    call: CallKey
    output: Content
    is_error: bool = False
    problem: str | None = None


class CreateChat(Command, frozen=True, kw_only=True):
    """Begin a chat. With a message to answer it is pending, with system messages alone it waits."""

    trigger = "create"
    chat: ChatId
    owner: str
    agent: str
    release: str
    messages: tuple[Message, ...]
    flags: tuple[int, ...] = ()
    title: Content | None = None
    labels: dict[str, str] = {}
    model: str | None = None
    effort: str | None = None
    parent: ChatId | None = None


class SendMessage(Command, frozen=True, kw_only=True):
    """Send a user's message; where the chat is busy it joins the queue, of at most ``queue_limit``."""

    trigger = "send"
    message: QueuedMessage
    queue_limit: int = QUEUE_LIMIT


class SendInterrupting(Command, frozen=True, kw_only=True):
    """Send a user's message and end the current turn. ``partial``: what a dead holder's answer left behind."""

    trigger = "send_interrupt"
    message: QueuedMessage
    queue_limit: int = QUEUE_LIMIT
    lease_dead: bool = False
    partial: Message | None = None
    report: AttemptReport | None = None


class EditMessage(Command, frozen=True, kw_only=True):
    """Replace a user's message; it and all after it leave history. Needs the transcript."""

    trigger = "edit"
    target: MessageId
    message: Message


class EditQueued(Command, frozen=True, kw_only=True):
    """Rewrite a queued message in its place."""

    trigger = "edit_queued"
    target: MessageId
    message: QueuedMessage


class ReorderQueue(Command, frozen=True, kw_only=True):
    """Put the whole queue in this order."""

    trigger = "reorder_queue"
    order: tuple[MessageId, ...]


class DeleteQueued(Command, frozen=True, kw_only=True):
    """Delete a queued message."""

    trigger = "delete_queued"
    target: MessageId


class PromoteQueued(Command, frozen=True, kw_only=True):
    """Move a queued message to the head and end the current turn."""

    trigger = "promote_queued"
    target: MessageId
    lease_dead: bool = False
    partial: Message | None = None
    report: AttemptReport | None = None


class Interrupt(Command, frozen=True, kw_only=True):
    """End the current turn now."""

    trigger = "interrupt"
    lease_dead: bool = False
    partial: Message | None = None
    report: AttemptReport | None = None


class SubmitResults(Command, frozen=True, kw_only=True):
    """Answer the open actions of ``action``, all of them and no others.

    ``broken``: calls that are approved with arguments that are not the JSON text of an object.
    """

    trigger = "submit_results"
    action: int
    results: tuple[SubmittedResult, ...] = ()
    approvals: tuple[ApprovalAnswer, ...] = ()
    broken: tuple[CallKey, ...] = ()
    budget: BudgetAnswer | None = None


class Resume(Command, frozen=True, kw_only=True):
    """Run the turn that history owes. ``go_on`` asks the model to go on after an interrupted answer."""

    trigger = "resume"
    go_on: Content = Content("Please go on.")


class Compact(Command, frozen=True, kw_only=True):
    """Ask for a compaction; ``hint`` says what matters."""

    trigger = "compact"
    hint: Content | None = None


class Clear(Command, frozen=True, kw_only=True):
    """Write a clear boundary: the model starts over, the user still sees all."""

    trigger = "clear"
    sentinel: Content = Content("The user cleared the conversation before this point.")


class Archive(Command, frozen=True, kw_only=True):
    """Put the chat away."""

    trigger = "archive"


class Unarchive(Command, frozen=True, kw_only=True):
    """Take the chat out again."""

    trigger = "unarchive"


class ForkChat(Command, frozen=True, kw_only=True):
    """Begin a chat as a copy; ``chatstate.fork`` plans the commands that follow it in the same append."""

    trigger = "fork"
    chat: ChatId
    owner: str
    agent: str
    release: str
    origin: Origin
    owed: bool
    flags: tuple[int, ...] = ()
    title: Content | None = None
    labels: dict[str, str] = {}
    model: str | None = None
    effort: str | None = None


class ImportMessages(Command, frozen=True, kw_only=True):
    """Copy messages of a fork's origin; only within the fork's append."""

    trigger = "import_messages"
    messages: tuple[Message, ...]


class SetTitle(Command, frozen=True, kw_only=True):
    """Change the title."""

    trigger = "set_title"
    title: Content | None


class SetLabels(Command, frozen=True, kw_only=True):
    """Replace the labels."""

    trigger = "set_labels"
    labels: dict[str, str]


class SetModel(Command, frozen=True, kw_only=True):
    """Choose model and effort for turns from now on; None means the agent's own."""

    trigger = "set_model"
    model: str | None
    effort: str | None = None


class SetAgent(Command, frozen=True, kw_only=True):
    """Hand the chat to another agent."""

    trigger = "set_agent"
    agent: str


class SetPinned(Command, frozen=True, kw_only=True):
    """Pin or unpin."""

    trigger = "set_pinned"
    pinned: bool


class SetRetention(Command, frozen=True, kw_only=True):
    """Say how long the chat is kept after its last change (microseconds; None: without limit)."""

    trigger = "set_retention"
    retention_us: int | None


class Erase(Command, frozen=True, kw_only=True):
    """Erase the content of messages; the store drops it in the same append. Needs the transcript."""

    trigger = "erase"
    targets: tuple[MessageId, ...]


class Adopt(Command, frozen=True, kw_only=True):
    """Take over a foreign chat."""

    trigger = "adopt"


class Uncompact(Command, frozen=True, kw_only=True):
    """Take the newest compaction boundary back. Needs the transcript."""

    trigger = "uncompact"


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
    """Commit the assistant message of a generate attempt, or (without a message) the recorded results of a batch."""

    trigger = "commit_step"
    fence: Fence
    message: Message | None = None
    report: AttemptReport | None = None


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
    """Ask the client for what it owes: open calls and approvals, with ``budget`` the answer to a budget question."""

    trigger = "require_action"
    fence: Fence
    decision: Decision
    timeout_us: int
    on_expiry: OnExpiry = "go_on"
    budget: bool = False


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


AnyCommand: TypeAlias = (
    CreateChat
    | SendMessage
    | SendInterrupting
    | EditMessage
    | EditQueued
    | ReorderQueue
    | DeleteQueued
    | PromoteQueued
    | Interrupt
    | SubmitResults
    | Resume
    | Compact
    | Clear
    | Archive
    | Unarchive
    | ForkChat
    | ImportMessages
    | SetTitle
    | SetLabels
    | SetModel
    | SetAgent
    | SetPinned
    | SetRetention
    | Erase
    | Adopt
    | Uncompact
    | Acquire
    | Release
    | RecordPolicy
    | StartAttempt
    | RecordToolResult
    | CommitStep
    | CommitCompaction
    | PersistContext
    | ScheduleRetry
    | RequireAction
    | FinishTurn
    | FailTurn
    | FinishInterruption
    | ExpireAction
    | ExpireActionEndTurn
    | Reconcile
)
