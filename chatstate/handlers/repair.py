"""Handler of reconcile: the one way out of a combination that must not be."""

from __future__ import annotations

from chatstate import commands as c
from chatstate.handlers.context import Context
from chatstate.handlers.user import raised_epoch
from events import vocabulary as v


def reconcile(ctx: Context, command: c.Reconcile) -> v.Reconciled:
    """Answer what is open and put the chat into error, where the user decides."""
    return v.Reconciled(answers=ctx.answers(), error=command.error, epoch=raised_epoch(ctx.control))
