"""Planning a fork: the commands that make a new chat hold the surviving messages of another.

The new chat does not need the other any more.

Ids of messages and calls follow from their place in a log, so a copied message gets a new id and every result is
pointed at the call's new place. What the origin held beside history (queue, holder, actions) stays behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from chatstate.commands import ImportMessages
from events.ids import CallKey, MessageId, call_key, message_id, message_of, part_of
from events.messages import Message
from events.parts import Part, ToolResultPart
from events.paths import contents
from events.state import ChatState

BATCH_BYTES: Final = 512 * 1024
"""Stored size of one import event, about half of what an event may have."""

_ITEM_BYTES: Final = 120
"""What a content takes in its event's list beside its value: salt and names."""


def plan_imports(origin: ChatState, first_version: int = 2, batch_bytes: int = BATCH_BYTES) -> list[ImportMessages]:
    """Return the imports that follow the fork's first event, in order.

    Args:
        origin: State of the origin at the version to fork at, with its transcript.
        first_version: Version that the first import will have in the new chat.
        batch_bytes: Stored bytes after which the next message goes into an event of its own.

    Returns:
        Imports; where calls are open at the fork, the last one is empty and answers them.
    """
    messages = [(item.id, item.message) for item in origin.need_transcript("fork").messages]
    recorded = _recorded_results(origin)
    new_ids: dict[MessageId, MessageId] = {}
    commands: list[ImportMessages] = []
    for batch in _batches([*messages, *recorded], batch_bytes):
        version = first_version + len(commands)
        for place, (old, _) in enumerate(batch):
            if old is not None:
                new_ids[old] = message_id(version, place)
        copies = tuple(_copy(old, message, new_ids) for old, message in batch)
        commands.append(ImportMessages(messages=copies))
    if any(not call.recorded for call in origin.control.indexes.open_calls):
        commands.append(ImportMessages(messages=()))
    return commands


def _recorded_results(origin: ChatState) -> list[tuple[MessageId | None, Message]]:
    results = origin.need_transcript("fork").results
    return [
        (None, Message(role="tool", parts=(results[call.key],)))
        for call in origin.control.indexes.open_calls
        if call.recorded and call.key in results
    ]


def _batches(
    messages: list[tuple[MessageId | None, Message]], limit: int
) -> Iterator[list[tuple[MessageId | None, Message]]]:
    batch: list[tuple[MessageId | None, Message]] = []
    size = 0
    for item in messages:
        bytes_ = _stored_size(item[1])
        if batch and size + bytes_ > limit:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += bytes_
    if batch:
        yield batch


def _stored_size(message: Message) -> int:
    # Facts and content as they will be stored, blobs counted as if they were not: many small messages fill an event
    # by their facts, and a text of control characters is six times as long in JSON.
    facts = len(msgspec.json.encode(message, enc_hook=lambda content: content.size))
    values = [content for _, content in contents(message) if content.available]
    return facts + sum(_ITEM_BYTES + len(msgspec.json.encode(content.value)) for content in values)


def _copy(old: MessageId | None, message: Message, new_ids: dict[MessageId, MessageId]) -> Message:
    return replace(message, parts=tuple(_point(part, new_ids) for part in message.parts), origin=old)


def _point(part: Part, new_ids: dict[MessageId, MessageId]) -> Part:
    if not isinstance(part, ToolResultPart):
        return part
    return replace(part, call=_moved(part.call, new_ids))


def _moved(call: CallKey, new_ids: dict[MessageId, MessageId]) -> CallKey:
    return call_key(new_ids[message_of(call)], part_of(call))
