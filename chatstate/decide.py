"""``decide``: the only door. A command and a state give an event, or a typed refusal that changes nothing.

The machine says whether the trigger is legal and which status follows; the trigger's handler checks what the table
cannot say and lists the effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, get_args

from msgspec import Struct

from chatstate import commands as c
from chatstate.classify import STATUS_OF, X, classify
from chatstate.handlers import action, metadata, queue, repair, user, worker
from chatstate.handlers.context import Context
from chatstate.machine import destination
from chatstate.table import TABLE
from events.envelope import SourceStatus, Status
from events.state import ChatState
from events.vocabulary import Event


class Decided(Struct, frozen=True, gc=False):
    """An event that may happen, with the statuses around it, its time (microseconds UTC), and the state it met."""

    event: Event
    source: SourceStatus
    dest: Status
    recorded_at: int
    met: X


HANDLERS: Final[Mapping[str, Callable[[Context, Any], Event]]] = MappingProxyType(
    {
        "create": user.create,
        "send": user.send,
        "send_interrupt": user.send_interrupt,
        "edit": user.edit,
        "interrupt": user.interrupt,
        "resume": user.resume,
        "compact": user.compact,
        "clear": user.clear,
        "archive": user.archive,
        "unarchive": user.unarchive,
        "promote_queued": user.promote,
        "edit_queued": queue.edit_queued,
        "reorder_queue": queue.reorder_queue,
        "delete_queued": queue.delete_queued,
        "fork": metadata.fork,
        "import_messages": metadata.import_messages,
        "set_title": metadata.set_title,
        "set_labels": metadata.set_labels,
        "set_model": metadata.set_model,
        "set_agent": metadata.set_agent,
        "set_active_tools": metadata.set_active_tools,
        "set_pinned": metadata.set_pinned,
        "set_retention": metadata.set_retention,
        "mark_context": metadata.mark_context,
        "set_turn_label": metadata.set_turn_label,
        "record_side_call": metadata.record_side_call,
        "erase": metadata.erase,
        "adopt": metadata.adopt,
        "uncompact": metadata.uncompact,
        "acquire": worker.acquire,
        "release": worker.release,
        "record_policy": worker.record_policy,
        "start_attempt": worker.start_attempt,
        "record_tool_result": worker.record_tool_result,
        "commit_step": worker.commit_step,
        "commit_compaction": worker.commit_compaction,
        "persist_context": worker.persist_context,
        "schedule_retry": worker.schedule_retry,
        "finish_turn": worker.finish_turn,
        "fail_turn": worker.fail_turn,
        "finish_interruption": worker.finish_interruption,
        "require_action": action.require_action,
        "submit_results": action.submit_results,
        "expire_action": action.expire_action,
        "expire_action_end_turn": action.expire_action_end_turn,
        "reconcile": repair.reconcile,
    }
)


def decide(state: ChatState, command: c.AnyCommand, now: int) -> Decided:
    """Return what ``command`` does to ``state``.

    Args:
        state: The state the command meets. Edit, erase, uncompact and commit_compaction need its transcript.
        command: What is asked.
        now: Database time in microseconds UTC; the event's time never goes back behind the one before.

    Raises:
        Refusal: The transition is not allowed, or an id, limit or fence does not hold (see ``chatstate.errors``).
        TranscriptMissing: The command needs the transcript.
    """
    control, trigger = state.control, command.trigger
    x = classify(control)
    dest = destination(trigger, x, case_of(x, command) if type(command) in _VARIED else "usual")
    recorded_at = max(control.recorded_at, now)
    ctx = Context(trigger=trigger, state=state, control=control, x=x, dest=dest, now=recorded_at)
    if control.importing and control.indexes.open_calls and trigger != "import_messages":
        ctx.not_allowed("calls among the fork's messages are open: its last import answers them")
    event = HANDLERS[trigger](ctx, command)
    source: SourceStatus = control.status if control.version else STATUS_OF[X.N]
    return Decided(event, source, dest, recorded_at, x)


_VARIED: Final = frozenset(
    command for command in get_args(c.AnyCommand) if "lease_dead" in command.__struct_fields__
) | {c.CreateChat}
"""Commands that may meet another case of a cell than the usual one."""


def case_of(x: X, command: c.AnyCommand) -> str:
    """Return which case of the table's cell ``command`` meets in ``x``."""
    if type(command) is c.CreateChat and not any(message.opens_turn for message in command.messages):
        return "unanswered"
    if not getattr(command, "lease_dead", False):
        return "usual"
    cell = TABLE[x].get(command.trigger)
    return "dead" if cell is not None and cell.dead else "usual"
