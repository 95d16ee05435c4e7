"""Bases of the events: what all have, and the plain effects on history and queue that most have.

The events themselves stand in ``events.vocabulary``; the draft (``events.draft``) applies the effects.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from msgspec import Struct

from events.ids import CallKey, MessageId, call_key, message_id
from events.messages import Message, QueuedMessage
from events.parts import ToolCallPart
from events.records import Answer, AttemptReport


class EventBase(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """Base of all events: the stored tag, its schema number, and the trigger of the machine that it records."""

    type: ClassVar[str]
    trigger: ClassVar[str]
    schema: ClassVar[int] = 1


class Effects(EventBase, frozen=True, kw_only=True):
    """What an event does to history and queue, in the order of application.

    ``removed_from`` and all after it leave history; ``answers`` enter history as one tool message each; then
    ``added``; then the queued messages named by ``promoted``. Of the queue: ``queued`` join the tail, ``dequeued``
    leave it unread, ``queue_order`` is its whole new order. Created messages take their ids from the event's version
    and their place among answers, added and queued, in that order.
    """

    removed_from: MessageId | None = None
    answers: tuple[Answer, ...] = ()
    added: tuple[Message, ...] = ()
    queued: tuple[QueuedMessage, ...] = ()
    dequeued: tuple[MessageId, ...] = ()
    queue_order: tuple[MessageId, ...] | None = None
    promoted: tuple[MessageId, ...] = ()

    def tool_calls(self, version: int) -> Iterator[tuple[CallKey, ToolCallPart]]:
        """Yield the tool calls in the messages that it adds, by the keys that they have at the event's version.

        What a summary is told by, to the user alone, has the form of a call and is none.
        """
        for place, message in enumerate(self.added, len(self.answers)):
            if message.visibility == "user":
                continue
            for part_place, part in enumerate(message.parts):
                if isinstance(part, ToolCallPart):
                    yield call_key(message_id(version, place), part_place), part


class Interrupting(Effects, frozen=True, kw_only=True):
    """Effects of what ends a turn now.

    ``epoch`` is the raised epoch where the holder was dead; ``report`` its cut attempt.
    """

    epoch: int | None = None
    report: AttemptReport | None = None
