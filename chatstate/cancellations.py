"""Synthetic tool results: which trigger answers open calls, with which reason, and the one way to do it.

Whatever ends a turn or lets a user's message into history leaves no open call behind it. Finished calls keep their
recorded results; what may be running is answered as unknown; the rest takes the reason of the table.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from events.content import Content
from events.control import Control, OpenCall, refused_as_one
from events.envelope import AT_REST, SourceStatus
from events.ids import MessageId, call_key, message_id, part_of
from events.messages import Message
from events.parts import ToolCallPart, ToolResultPart
from events.reasons import Reason
from events.records import Answer

_BUSY: Final = ("pending", "running", "requires_action")


def _rows(trigger: str, statuses: tuple[SourceStatus, ...], reason: Reason) -> dict[tuple[str, SourceStatus], Reason]:
    return {(trigger, status): reason for status in statuses}


REASONS: Final = MappingProxyType(
    {
        **_rows("send", AT_REST, Reason.NEW_MESSAGE),
        **_rows("send_interrupt", AT_REST, Reason.NEW_MESSAGE),
        **_rows("send_interrupt", _BUSY, Reason.INTERRUPT),
        **_rows("edit", (*_BUSY, *AT_REST), Reason.EDIT),
        **_rows("promote_queued", (*_BUSY, "error"), Reason.PROMOTION),
        **_rows("interrupt", _BUSY, Reason.INTERRUPT),
        **_rows("finish_turn", ("running",), Reason.PROMOTION),
        **_rows("finish_interruption", ("running",), Reason.INTERRUPT),
        **_rows("expire_action", ("requires_action",), Reason.ACTION_TIMED_OUT),
        **_rows("expire_action_end_turn", ("requires_action",), Reason.ACTION_TIMED_OUT),
        **_rows("fork", ("none",), Reason.FORK),
        **_rows("clear", AT_REST, Reason.CLEAR),
        **_rows("compact", AT_REST, Reason.COMPACT),
        **_rows("reconcile", (*_BUSY, *AT_REST), Reason.REPAIRED),
    }
)
"""(trigger, status) -> the reason of calls that neither finished nor may be running."""

_STARTED_BEFORE: Final = frozenset({"interrupt", "send_interrupt", "finish_interruption"})


def reason_for(call: OpenCall, trigger: str, status: SourceStatus) -> Reason | None:
    """Return why ``call`` is answered by ``trigger`` in ``status``; None where its own recorded result answers it."""
    if call.recorded:
        return None
    if call.may_have_happened:
        return Reason.INTERRUPTED_UNKNOWN
    if trigger in _STARTED_BEFORE and status == "running" and call.runner == "local":
        return Reason.NOT_STARTED
    return REASONS[trigger, status]


def answers(control: Control, trigger: str, status: SourceStatus | None = None) -> tuple[Answer, ...]:
    """Answer every open call of the last assistant message, in call order."""
    source = control.status if status is None else status
    calls = control.indexes.open_calls
    if refused_as_one(calls):
        calls = tuple(replace(call, started=False, possibly_done=False) for call in calls)  # none of them ran
    return tuple(Answer(call=c.key, reason=reason_for(c, trigger, source)) for c in calls)


def anchored(message: Message, own: MessageId) -> Message:
    """Return ``message`` with the results that its provider gave pointed at its own calls, by their part positions.

    Who made the message could not know the id that it has now.
    """
    if not any(isinstance(part, ToolResultPart) for part in message.parts):
        return message
    parts = tuple(
        replace(part, call=call_key(own, part_of(part.call))) if isinstance(part, ToolResultPart) else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def closed(message: Message, version: int, place: int) -> tuple[Message, ...]:
    """Return ``message`` and answers to the calls in it; it is at ``place`` among those that the event creates.

    A kept answer, whole or partial, never ran its calls: the local ones are answered as not started, the rest as
    interrupted.
    """
    own = message_id(version, place)
    results = tuple(
        Message(
            role="tool",
            parts=(
                ToolResultPart(
                    call=call_key(own, at),
                    is_error=True,
                    reason=Reason.NOT_STARTED if part.runner == "local" else Reason.INTERRUPT,
                ),
            ),
        )
        for at, part in enumerate(message.parts)
        if isinstance(part, ToolCallPart) and part.runner != "provider"
    )
    return (anchored(message, own), *results)


REJECTED: Final = Content("The user did not approve this call: it was not run.")
"""Output of a call whose approval was refused."""
