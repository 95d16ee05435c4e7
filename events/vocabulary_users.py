"""Events of users: how a chat begins, its messages and queue, and what they ask of its turns."""

from __future__ import annotations

from msgspec import field

from events.content import Content
from events.effects import Effects, EventBase, Interrupting
from events.ids import MessageId
from events.messages import QueuedMessage
from events.records import ApprovalAnswer, BudgetAnswer


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
