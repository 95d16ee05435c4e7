"""Commands of users: how a chat begins, its messages and queue, and what they ask of its turns."""

from __future__ import annotations

from msgspec import Struct, field

from chatstate.commands_base import Command
from events.content import Content
from events.ids import CallKey, ChatId, MessageId
from events.messages import Message, QueuedMessage
from events.parts import FilePart
from events.records import ApprovalAnswer, AttemptReport, BudgetAnswer

QUEUE_LIMIT = 20
"""Messages that a queue holds unless the command says otherwise."""


class SubmittedResult(Struct, frozen=True, kw_only=True):
    """A client's result of a call, with its files. ``problem`` says why the given value cannot be stored."""

    call: CallKey
    output: Content
    is_error: bool = False
    problem: str | None = None
    media: tuple[FilePart, ...] = ()
    attachments: tuple[FilePart, ...] = ()


class Unfit(Struct, frozen=True, kw_only=True):
    """A call that is approved with arguments that cannot be taken, and why."""

    call: CallKey
    why: str


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
    labels: dict[str, str] = field(default_factory=dict)
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
    """Replace a user's message; it and all after it leave history. Needs the transcript.

    What names no author keeps that of the message.
    """

    trigger = "edit"
    target: MessageId
    message: Message


class EditQueued(Command, frozen=True, kw_only=True):
    """Rewrite a queued message in its place. Needs the transcript.

    It keeps the author, model and effort that are not given anew.
    """

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

    ``broken``: calls that are approved with arguments that are not the JSON text of an object; ``unfit``: with
    arguments that their tool is known not to take.
    """

    trigger = "submit_results"
    action: int
    results: tuple[SubmittedResult, ...] = ()
    approvals: tuple[ApprovalAnswer, ...] = ()
    broken: tuple[Unfit, ...] = ()
    unfit: tuple[Unfit, ...] = ()
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
