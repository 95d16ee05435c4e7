"""The transcript: messages of a chat in history order, and the bodies that control names by id alone.

Structurally shared (``events.shared``), so old states stay valid and cost nothing, and folding a long log is linear.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, final

from msgspec import Struct

from events.content import Content
from events.ids import CallKey, MessageId
from events.messages import Message, QueuedMessage
from events.parts import ToolResultPart
from events.records import Policy
from events.shared import SharedSequence

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class TranscriptMessage(Struct, frozen=True, gc=False):
    """A message in history: its id, the message, and the version of the event that put it there."""

    id: MessageId
    message: Message
    version: int


@final
class Messages(SharedSequence[TranscriptMessage]):
    """An immutable sequence of transcript messages with cheap append."""

    __slots__ = ()

    def find(self, message: MessageId) -> int | None:
        """Return the position of ``message``, or None. Searches from the end, where edits are likely."""
        items = self._items
        return next((i for i in range(self._length - 1, -1, -1) if items[i].id == message), None)


class Transcript(Struct, frozen=True, kw_only=True, gc=False):
    """Messages, and the bodies behind control's ids.

    Attributes:
        messages: History in order.
        queued: Bodies of the queued messages.
        results: Recorded results of a batch that is not committed yet.
        arguments: Arguments that an approval replaced.
        policies: Recorded policies by digest.
        title: The chat's title.
        hint: The user's hint to the requested compaction.
    """

    messages: Messages
    queued: Mapping[MessageId, QueuedMessage]
    results: Mapping[CallKey, ToolResultPart]
    arguments: Mapping[CallKey, Content]
    policies: Mapping[str, Policy]
    title: Content | None = None
    hint: Content | None = None


def empty_transcript() -> Transcript:
    """Return the transcript of a chat that does not exist yet."""
    return Transcript(messages=Messages(), queued=_NOTHING, results=_NOTHING, arguments=_NOTHING, policies=_NOTHING)
