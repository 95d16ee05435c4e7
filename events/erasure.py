"""Which contents belong to a message: what erasing it must drop.

Erasing goes by message id. A message's content lies in the event that created it, and may lie elsewhere too: in an
edit of it while it was queued, in the recorded result that it took into history, in arguments that an approval
replaced, in copies that a compaction re-inserted. What a user asked of a summary belongs to the summary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from events.codec import decode_places
from events.effects import Effects
from events.envelope import StoredEvent
from events.ids import CallKey, MessageId, message_id, message_of
from events.messages import Message
from events.paths import contents
from events.upcasting import REGISTRY, Registry
from events.vocabulary import (
    CompactionCommitted,
    CompactionRequested,
    Event,
    MessagesImported,
    QueuedMessageEdited,
    ResultsSubmitted,
    ToolResultRecorded,
)


def content_of_message(stored: StoredEvent, index: int, registry: Registry = REGISTRY) -> tuple[int, ...]:
    """Return the places in an event's content list that belong to the message it created as ``version.index``.

    Args:
        stored: The event; its content is not read.
        index: Place of the message among those that the event created: answers, then added, then queued.
        registry: The types known.

    Raises:
        IndexError: The event created no such message.
        UnknownEventType, NewerSchema, MalformedEvent: As ``codec.decode``.
    """
    created = _created(decode_places(stored, registry))
    if not 0 <= index < len(created):
        raise IndexError(index)
    return _places(created[index])


def content_of_messages(
    log: Iterable[StoredEvent], messages: Collection[MessageId], registry: Registry = REGISTRY
) -> dict[int, tuple[int, ...]]:
    """Return what erasing some messages drops: event version -> places in its content list, in order.

    Args:
        log: All events of the chat, in order; contents are not read.
        messages: Ids of the messages. Ids that no event created are passed over.
        registry: The types known.

    Raises:
        UnknownEventType, NewerSchema, MalformedEvent: As ``codec.decode``.
    """
    wanted = frozenset(messages)
    found: dict[int, set[int]] = {}
    recorded: dict[CallKey, tuple[int, tuple[int, ...]]] = {}
    hint: tuple[int, tuple[int, ...]] | None = None
    for stored in log:
        event, version = decode_places(stored, registry), stored.envelope.version
        if isinstance(event, ToolResultRecorded):
            recorded[event.result.call] = version, _places(event.result)
        if isinstance(event, CompactionRequested):
            hint = version, _places(event.hint)
        for at, places in _belonging(event, version, wanted, recorded):
            found.setdefault(at, set()).update(places)
        if isinstance(event, CompactionCommitted):
            # The summary comes first; what only users see of it, and messages that stand there again, come after it.
            if hint is not None and any(message_id(version, index) in wanted for index in range(_BOUNDARY)):
                found.setdefault(hint[0], set()).update(hint[1])
            hint = None
    return {version: tuple(sorted(places)) for version, places in sorted(found.items()) if places}


def _belonging(
    event: Event,
    version: int,
    wanted: frozenset[MessageId],
    recorded: dict[CallKey, tuple[int, tuple[int, ...]]],
) -> Iterator[tuple[int, tuple[int, ...]]]:
    if isinstance(event, QueuedMessageEdited) and event.id in wanted:
        yield version, _places(event.message)
    if isinstance(event, ResultsSubmitted):
        for approval in event.approvals:
            if message_of(approval.call) in wanted:
                yield version, _places(approval)
    if not isinstance(event, Effects):
        return
    # A fork's messages name as their origin ids of the chat that they were copied from.
    copies = not isinstance(event, MessagesImported)
    for index, message in enumerate(_created(event)):
        origin = message.origin if copies and message is not None else None
        if message_id(version, index) not in wanted and origin not in wanted:
            continue
        yield version, _places(message)
        if message is None and event.answers[index].reason is None and event.answers[index].call in recorded:
            yield recorded[event.answers[index].call]


_NONE: Final[tuple[int, ...]] = ()

_BOUNDARY: Final = 3
"""Messages of a boundary."""


def _created(event: Event) -> list[Message | None]:
    """Return the messages that an event created, in the order of their ids; answers have no message of their own."""
    if not isinstance(event, Effects):
        return []
    return [*(None for _ in event.answers), *event.added, *(queued.message for queued in event.queued)]


def _places(value: object) -> tuple[int, ...]:
    if value is None:
        return _NONE
    return tuple(content.value for _, content in contents(value) if isinstance(content.value, int))
