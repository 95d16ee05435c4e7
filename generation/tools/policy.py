"""Which calls of one step may run together. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from events.control import refused_as_one
from events.ids import CallKey
from generation.tools.output import Answer, CallResult


class ToolCall(Struct, frozen=True, kw_only=True):
    """A committed call.

    ``arguments``: JSON text as the model gave it, None where it is gone, by an erasure. ``exclusive``: the fact frozen
    at its commit.

    ``rewritten``: JSON text that the client, or a hook, gave in the arguments' place. ``approved``: the client approved
    it, so it runs with the arguments that were approved or not at all. ``possibly_done``: a holder that is gone had
    started it. ``reconcile``: then its tool is asked before it runs.
    """

    key: CallKey
    name: str
    arguments: str | None
    exclusive: bool = False
    possibly_done: bool = False
    reconcile: bool = False
    approved: bool = False
    rewritten: str | None = None

    @property
    def in_force(self) -> str | None:
        """The JSON text of the arguments that it runs with; None where they are gone, and it must not run."""
        return self.arguments if self.rewritten is None else self.rewritten


def exclusive_refusals(calls: Sequence[ToolCall]) -> tuple[CallResult, ...]:
    """Return the refusals, in call order, of a batch that holds an exclusive call beside others; else nothing.

    Nothing of such a batch runs, so that the model can make the calls again in steps of their own.

    Args:
        calls: All open calls of the step, those that the client runs or has to approve included.
    """
    if not refused_as_one(calls):
        return ()
    names = sorted({call.name for call in calls if call.exclusive})
    return tuple(
        CallResult(key=call.key, name=call.name, answer=Answer(_refusal(call, ", ".join(names)), is_error=True))
        for call in calls
    )


def _refusal(call: ToolCall, exclusive: str) -> str:
    if call.exclusive:
        return f"Not run: {call.name} must be called alone, without other calls beside it. Call it again by itself."
    why = f"skipped because {exclusive} was called beside it, which must be called alone"
    return f"Not run: {why}. Call it again in another step."
