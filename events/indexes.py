"""Indexes: what decisions need of history, kept up message by message.

One function, ``advance``, tells what a message that enters history does to them. After an edit or an undone compaction
the same function runs over what survives, so there is one rule, in one place. Facts alone are read.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, get_args

from msgspec.structs import replace

from events.control import Indexes, OpenCall
from events.ids import CallKey, MessageId, call_key, part_of
from events.messages import Message
from events.parts import CrashPolicy, HookContextPart, ToolCallPart, ToolResultPart
from events.transcript import Messages

# Control leaves out what is its default, and the encoder knows a default by identity: a text that was built at run time
# equals it and is not it, and the same fold would have other bytes.
_CRASH: Final[dict[str, CrashPolicy]] = {policy: policy for policy in get_args(CrashPolicy)}


def advance(indexes: Indexes, message: MessageId, body: Message) -> bool:
    """Change ``indexes`` for ``body``, which enters history as ``message``; return whether it opens a turn."""
    indexes.messages += 1
    role = body.role
    if body.boundary is not None:
        _pass_boundary(indexes, message, body)
        return body.opens_turn
    if body.context is not None:
        indexes.context_source = body.context.source
        indexes.context_revision = body.context.revision
    if role == "system":
        return False
    if body.visibility != "user":
        indexes.visible_after += 1
        indexes.last_role = role
        indexes.last_interrupted = body.interrupted
        if role == "assistant":
            _take_assistant(indexes, message, body)
            return False
    if role == "tool":
        _take_results(indexes, body)
    elif body.opens_turn:
        indexes.turn_start = message
        indexes.steps = 0
        indexes.stop_after = False
        indexes.nudged = indexes.more_step = False
        return True
    elif body.origin is None and any(type(part) is HookContextPart and part.event == "stop" for part in body.parts):
        # A copy says nothing of the current turn: a compaction may show again what let an earlier one go on.
        indexes.nudged = indexes.more_step = True
    return False


def _pass_boundary(indexes: Indexes, message: MessageId, body: Message) -> None:
    # The summary (model-only user message) is the first of the three: from it on everything before counts as
    # compressed.
    if body.role != "user":
        return
    indexes.boundary = message
    indexes.boundary_kind = body.boundary
    indexes.visible_after = 0
    indexes.assistants_after = 0
    indexes.context_tokens = 0
    indexes.first_context_tokens = 0
    indexes.last_role = None
    indexes.last_interrupted = False


def _take_assistant(indexes: Indexes, message: MessageId, body: Message) -> None:
    indexes.steps += 1
    indexes.assistants_after += 1
    if body.step is not None:
        indexes.context_tokens = body.step.context
        if indexes.assistants_after == 1:
            indexes.first_context_tokens = indexes.context_tokens
    indexes.open_calls = ()
    for part in body.parts:
        if type(part) is ToolCallPart:
            indexes.open_calls = _open_calls(message, body)
            break


def _open_calls(message: MessageId, body: Message) -> tuple[OpenCall, ...]:
    return tuple(
        _open(part, call_key(message, place))
        for place, part in enumerate(body.parts)
        if type(part) is ToolCallPart and part.runner != "provider"
    )


def _open(part: ToolCallPart, key: CallKey) -> OpenCall:
    return OpenCall(
        key=key,
        name=part.name,
        runner=part.runner,
        crash=_CRASH[part.crash],
        exclusive=part.exclusive,
        stop_after=part.stop_after,
        needs_approval=part.needs_approval,
        reconcile=part.reconcile,
        action_timeout_us=part.action_timeout_us,
        action_on_expiry=part.action_on_expiry,
    )


def _take_results(indexes: Indexes, body: Message) -> None:
    for part in body.parts:
        if not isinstance(part, ToolResultPart):
            continue
        calls = indexes.open_calls
        place = find_call(calls, part.call)
        if place is None:
            continue
        indexes.open_calls = calls[:place] + calls[place + 1 :]
        if calls[place].stop_after and not part.is_error:
            indexes.stop_after = True


def index(messages: Messages) -> Indexes:
    """Return the indexes of a whole history, for what cannot be advanced: an edit, an undone compaction."""
    indexes = Indexes()
    for item in messages:
        advance(indexes, item.id, item.message)
    return indexes


def find_call(calls: tuple[OpenCall, ...], key: CallKey) -> int | None:
    """Return the place of the call ``key`` among open calls, or None.

    Open calls are those of one message, by their position in it: a step may have thousands, and each of their results
    asks for its own.
    """
    try:
        place = bisect_left(calls, part_of(key), key=_part_of)
    except ValueError:
        return None  # no key of ours: a log that was tampered with may hold any text
    return place if place < len(calls) and calls[place].key == key else None


def _part_of(call: OpenCall) -> int:
    return part_of(call.key)


def mark_call(calls: tuple[OpenCall, ...], key: CallKey, **marks: bool) -> tuple[OpenCall, ...]:
    """Return ``calls`` with ``marks`` set on the one whose key is ``key``."""
    place = find_call(calls, key)
    return calls if place is None else (*calls[:place], replace(calls[place], **marks), *calls[place + 1 :])


def mark_calls(calls: tuple[OpenCall, ...], keys: frozenset[str], **marks: bool) -> tuple[OpenCall, ...]:
    """Return ``calls`` with ``marks`` set on those whose key is among ``keys``."""
    return tuple(replace(call, **marks) if call.key in keys else call for call in calls)
