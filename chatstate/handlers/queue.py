"""Handlers of the queue that leave the turn alone: edit, reorder, delete."""

from __future__ import annotations

from chatstate import commands as c
from chatstate.errors import QueuedNotFound
from chatstate.handlers.context import Context
from events import vocabulary as v


def edit_queued(ctx: Context, command: c.EditQueued) -> v.QueuedMessageEdited:
    """Rewrite a queued message."""
    ctx.check_queued(command.target)
    ctx.check_user_message(command.message.message)
    return v.QueuedMessageEdited(id=command.target, message=command.message)


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
