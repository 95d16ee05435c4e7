"""Handlers of the queue that leave the turn alone: edit, reorder, delete."""

from __future__ import annotations

from msgspec.structs import replace

from chatstate import commands as c
from chatstate.errors import QueuedNotFound
from chatstate.handlers.context import Context, authored
from events import vocabulary as v


def edit_queued(ctx: Context, command: c.EditQueued) -> v.QueuedMessageEdited:
    """Rewrite a queued message: it keeps its author, model and effort, but for those that are given anew."""
    ctx.check_queued(command.target)
    given = command.message
    ctx.check_user_message(given.message)
    held = ctx.state.need_transcript(ctx.trigger).queued[command.target]
    message = replace(
        given,
        message=authored(given.message, held.message.author),
        model=given.model or held.model,
        effort=given.effort or held.effort,
    )
    return v.QueuedMessageEdited(id=command.target, message=message)


def reorder_queue(ctx: Context, command: c.ReorderQueue) -> v.QueueReordered:
    """Put the whole queue in the given order."""
    held = sorted(item.id for item in ctx.control.queue)
    if sorted(command.order) != held:
        given = ", ".join(command.order)
        ctx.refuse(
            QueuedNotFound, f"the order must name each queued message once ({', '.join(held)}), it names {given}"
        )
    return v.QueueReordered(queue_order=command.order)


def delete_queued(ctx: Context, command: c.DeleteQueued) -> v.QueuedMessageDeleted:
    """Delete a queued message."""
    ctx.check_queued(command.target)
    return v.QueuedMessageDeleted(dequeued=(command.target,))
