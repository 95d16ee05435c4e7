"""Handlers of what users do to history: create, send, edit, interrupt, resume, compact, clear, archive."""

from __future__ import annotations

from typing import Final

from chatstate import commands as c
from chatstate.cancellations import answers
from chatstate.classify import X
from chatstate.errors import MessageNotFound, NotAUserMessage, NothingOwed, NothingToClear, NothingToCompact
from chatstate.handlers.context import Context, Ending, authored
from events import vocabulary as v
from events.content import Content
from events.control import Control
from events.ids import MessageId, call_key, message_id
from events.indexes import index
from events.messages import BoundaryKind, Message
from events.parts import TextPart, ToolCallPart, ToolResultPart

_IDLE: Final = (X.W, X.E0)


def create(ctx: Context, command: c.CreateChat) -> v.ChatCreated:
    """Begin a chat."""
    for message in command.messages:
        _check_first(ctx, message)
    return v.ChatCreated(
        chat=command.chat,
        owner=command.owner,
        agent=command.agent,
        release=command.release,
        flags=command.flags,
        title=command.title,
        labels=command.labels,
        model=command.model,
        effort=command.effort,
        parent=command.parent,
        added=command.messages,
    )


def send(ctx: Context, command: c.SendMessage) -> v.MessageSent:
    """Let the message into history where the chat is idle, else into the queue."""
    ctx.check_user_message(command.message.message)
    sent = command.message
    if ctx.x in _IDLE:
        return v.MessageSent(answers=ctx.answers(), added=(sent.message,), model=sent.model, effort=sent.effort)
    ctx.check_queue(command.queue_limit)
    if ctx.x is X.E1:
        return v.MessageSent(answers=ctx.answers(), queued=(command.message,), promoted=ctx.head)
    return v.MessageSent(queued=(command.message,))


def send_interrupt(ctx: Context, command: c.SendInterrupting) -> v.MessageSentInterrupting:
    """Let the message in and end the turn: here, or by way of the live worker."""
    ctx.check_user_message(command.message.message)
    if ctx.dest == "running":
        ctx.check_queue(command.queue_limit)
        return v.MessageSentInterrupting(queued=(command.message,))
    ending = ctx.end_turn(command.partial)
    if ctx.control.queue:
        ctx.check_queue(command.queue_limit)
        ending["queued"] = (command.message,)
        ending["promoted"] = ctx.head
    else:
        ending["added"] = (*ending["added"], command.message.message)
    return v.MessageSentInterrupting(
        **ending,
        epoch=raised_epoch(ctx.control),
        report=ctx.dead_report(command.report),
        # A message in the queue brings its choice with it when it is promoted.
        model=None if ctx.control.queue else command.message.model,
        effort=None if ctx.control.queue else command.message.effort,
    )


def edit(ctx: Context, command: c.EditMessage) -> v.MessageEdited:
    """Replace a user's message, which keeps its author unless another is given, and drop what came after it."""
    ctx.check_user_message(command.message)
    messages = ctx.state.need_transcript(ctx.trigger).messages
    position = messages.find(command.target)
    if position is None:
        ctx.refuse(MessageNotFound, f"no message {command.target!r} is in history")
    target = messages[position].message
    if not target.opens_turn or target.boundary is not None:
        ctx.refuse(NotAUserMessage, f"message {command.target!r} is not a user's message that clients see")
    surviving = ctx.control.clone()
    surviving.indexes = index(messages.before(position))
    return v.MessageEdited(
        removed_from=command.target,
        answers=answers(surviving, ctx.trigger),
        added=(authored(command.message, target.author),),
        dequeued=tuple(item.id for item in ctx.control.queue),
    )


def interrupt(ctx: Context, command: c.Interrupt) -> v.TurnInterrupted:
    """End the turn: here, or by way of the live worker."""
    if ctx.dest == "running":
        return v.TurnInterrupted()
    ending = ctx.end_turn(command.partial)
    ending["promoted"] = ctx.head
    return v.TurnInterrupted(**ending, epoch=raised_epoch(ctx.control), report=ctx.dead_report(command.report))


def resume(ctx: Context, command: c.Resume) -> v.TurnResumed:
    """Run the owed turn; no prompt may end with the interrupted answer."""
    control = ctx.control
    if not control.owed:
        ctx.refuse(NothingOwed, "history owes no turn; send a message instead")
    if control.indexes.last_role == "assistant" and control.indexes.last_interrupted:
        go_on = Message(role="user", visibility="model", parts=(TextPart(text=command.go_on),))
        return v.TurnResumed(added=(go_on,))
    return v.TurnResumed()


def compact(ctx: Context, command: c.Compact) -> v.CompactionRequested:
    """Ask for a compaction."""
    if not ctx.control.indexes.assistants_after:
        ctx.refuse(NothingToCompact, "no answer follows the newest boundary")
    return v.CompactionRequested(answers=ctx.answers(), hint=command.hint)


def clear(ctx: Context, command: c.Clear) -> v.ContextCleared:
    """Write a clear boundary."""
    if not ctx.control.indexes.visible_after:
        ctx.refuse(NothingToClear, _nothing_to_clear(ctx.control))
    given = ctx.answers()
    marker = message_id(ctx.version, len(given) + 1)
    trio = boundary("chat_cleared", marker, command.sentinel, Content({"source": "manual"}))
    return v.ContextCleared(answers=given, added=trio)


def _nothing_to_clear(control: Control) -> str:
    """Say why there is nothing to clear; of a compaction, whose summary is a part of it, what to do to be rid of it."""
    why = "nothing that the model reads follows the newest boundary"
    if control.indexes.boundary_kind != "chat_summarized":
        return why
    undo = ", or uncompact" if control.status == "waiting" else ""
    return f"{why}, a compaction, and its summary is a part of it: send a message first{undo}"


def archive(_ctx: Context, _command: c.Archive) -> v.ChatArchived:
    """Put the chat away."""
    return v.ChatArchived()


def unarchive(_ctx: Context, _command: c.Unarchive) -> v.ChatUnarchived:
    """Take the chat out again."""
    return v.ChatUnarchived()


def boundary(kind: BoundaryKind, marker: MessageId, summary: Content, details: Content) -> tuple[Message, ...]:
    """Return the three messages of a boundary; ``marker`` is the id that the second one, the user's mark, will have."""
    call = ToolCallPart(name=kind, arguments=Content("{}"), provider_call_id=kind, runner="provider")
    result = ToolResultPart(call=call_key(marker, 0), output=details)
    return (
        Message(role="user", visibility="model", parts=(TextPart(text=summary),), boundary=kind),
        Message(role="assistant", visibility="user", parts=(call,), boundary=kind),
        Message(role="tool", visibility="user", parts=(result,), boundary=kind),
    )


def raised_epoch(control: Control) -> int | None:
    """Return the epoch that a command gives a chat it takes from a dead holder; None where there is no holder."""
    return control.epoch + 1 if control.holder is not None else None


def promote(ctx: Context, command: c.PromoteQueued) -> v.QueuedMessagePromoted:
    """Move a queued message to the head, then end the turn."""
    ctx.check_queued(command.target)
    if ctx.dest == "running":
        rest = tuple(item.id for item in ctx.control.queue if item.id != command.target)
        return v.QueuedMessagePromoted(queue_order=(command.target, *rest))
    ending: Ending = ctx.end_turn(command.partial)
    ending["promoted"] = (command.target,)
    return v.QueuedMessagePromoted(**ending, epoch=raised_epoch(ctx.control), report=ctx.dead_report(command.report))


def _check_first(ctx: Context, message: Message) -> None:
    if message.role == "user" and message.visibility == "both":
        ctx.check_user_message(message)
    calls = any(isinstance(part, ToolCallPart | ToolResultPart) for part in message.parts)
    if calls or message.role == "tool" or message.boundary is not None:
        ctx.not_allowed("a chat does not begin with tool calls, results or boundaries")
    if message.role == "user" and message.visibility == "user":
        ctx.not_allowed("a user's message that the model does not read cannot be answered")
