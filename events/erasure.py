"""Which contents belong to a message: what erasing it must drop.

Erasing goes by message id. A message's content lies in the event that created it, and may lie elsewhere too: in an
edit of it while it was queued, in the recorded result that it took into history, in arguments that an approval
replaced, in copies that a compaction re-inserted. What a user asked of a summary belongs to the summary.

What belongs to nothing that has an id must not outlive an erasure either: a result that was recorded and never entered
history, because an edit removed its call, goes with that call's message. What was asked of a summary that never came
(or has not come yet), labels of turns, and titles that the chat has no more go with whatever is erased, and so do texts
of errors that are over: they may say again what was said. The title that the chat has stays, since its owner sees it in
lists, and may change it first; and so does the error that it is in, until it is resumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from events.codec import decode_places
from events.effects import Effects
from events.envelope import Status, StoredEvent
from events.ids import CallKey, MessageId, message_id, message_of, place_of
from events.messages import Message
from events.paths import contents
from events.upcasting import REGISTRY, Registry
from events.vocabulary import (
    AttemptStarted,
    ChatCreated,
    ChatForked,
    CompactionCommitted,
    CompactionRequested,
    Event,
    MessagesImported,
    QueuedMessageEdited,
    Reconciled,
    ResultsSubmitted,
    RetryScheduled,
    TitleChanged,
    ToolResultRecorded,
    TurnFailed,
    TurnLabelChanged,
)

_Recorded: TypeAlias = dict[CallKey, tuple[int, tuple[int, ...]]]
"""Calls whose result is recorded and has not entered history -> where its content lies: version, and places there."""


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
    recorded: _Recorded = {}
    hints: dict[int, tuple[int, ...]] = {}
    hint: int | None = None
    beside = _Beside()
    for stored in log:
        event, version = decode_places(stored, registry), stored.envelope.version
        beside.take(event, stored)
        if isinstance(event, ToolResultRecorded):
            recorded[event.result.call] = version, _places(event.result)
        if isinstance(event, CompactionRequested):
            hint, hints[version] = version, _places(event.hint)
        for at, places in _belonging(event, version, wanted, recorded):
            found.setdefault(at, set()).update(places)
        if isinstance(event, CompactionCommitted) and event.manual and hint is not None:
            # The summary comes first; what only users see of it, and messages that stand there again, come after it.
            if not any(message_id(version, index) in wanted for index in range(_BOUNDARY)):
                del hints[hint]
            hint = None
    for at, places in (hints | beside.over()).items() if wanted else ():
        found.setdefault(at, set()).update(places)
    return {version: tuple(sorted(places)) for version, places in sorted(found.items()) if places}


class _Beside:
    """Content that belongs to no message: labels, titles, and texts of errors. What of it is in force stays."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, ...]] = {}
        self._title: int | None = None
        self._failed: tuple[int, Status] | None = None

    def take(self, event: Event, stored: StoredEvent) -> None:
        """Go on with the next event."""
        version, dest = stored.envelope.version, stored.envelope.dest
        if isinstance(event, AttemptStarted) or (self._failed is not None and dest not in {self._failed[1], "running"}):
            # A retry is told of until the next start, in the hands of its new holder too.
            self._failed = None
        if isinstance(event, _FAILED):
            self._failed, self._places[version] = (version, dest), _places(event.error)
        if isinstance(event, TurnLabelChanged):
            self._places[version] = _places(event.label)
        if isinstance(event, _TITLED):
            self._title, self._places[version] = version, _places(event.title)

    def over(self) -> dict[int, tuple[int, ...]]:
        """Return where content lies that is not in force any more: event version -> places."""
        in_force = {self._title, None if self._failed is None else self._failed[0]}
        return {version: places for version, places in self._places.items() if version not in in_force}


def has_message(log: Sequence[StoredEvent], message: MessageId, registry: Registry = REGISTRY) -> bool:
    """Whether an event of a log created a message: it may have left history since.

    Args:
        log: All events of the chat, in order; contents are not read.
        message: Its id.
        registry: The types known.

    Raises:
        UnknownEventType, NewerSchema, MalformedEvent: As ``codec.decode``.
    """
    place = place_of(message)
    if place is None or not 0 < place[0] <= len(log):
        return False
    return place[1] < len(_created(decode_places(log[place[0] - 1], registry)))


def _belonging(
    event: Event,
    version: int,
    wanted: frozenset[MessageId],
    recorded: _Recorded,
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
    for answer in event.answers:
        recorded.pop(answer.call, None)
    if event.removed_from is not None:
        yield from (recorded[call] for call in recorded if message_of(call) in wanted)
        recorded.clear()


_NONE: Final[tuple[int, ...]] = ()

_FAILED: Final = (TurnFailed, RetryScheduled, Reconciled)

_TITLED: Final = (ChatCreated, ChatForked, TitleChanged)

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
