"""The transcript: messages of a chat in history order, and the bodies that control names by id alone.

Structurally shared: appending to the newest transcript extends a list that older transcripts see a prefix of, so old
states stay valid and cost nothing, and folding a long log is linear. A branch that appends elsewhere copies its prefix
once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final, overload

from msgspec import Struct

from events.content import Content
from events.ids import CallKey, MessageId
from events.messages import Message, QueuedMessage
from events.parts import ToolResultPart
from events.records import Policy


class TranscriptMessage(Struct, frozen=True, gc=False):
    """A message in history: its id, the message, and the version of the event that put it there."""

    id: MessageId
    message: Message
    version: int


@final
class Messages(Sequence[TranscriptMessage]):
    """An immutable sequence of transcript messages with cheap append."""

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[TranscriptMessage] | None = None, length: int | None = None) -> None:
        self._items: Final[list[TranscriptMessage]] = [] if items is None else items
        self._length: Final[int] = len(self._items) if length is None else length

    def append(self, item: TranscriptMessage) -> Messages:
        """Return a sequence with ``item`` at its end."""
        items, length = self._items, self._length
        if len(items) == length:
            items.append(item)
            # Another thread may have appended between check and append: then the place is not ours, and we branch.
            if items[length] is item:
                return Messages(items, length + 1)
        return Messages([*items[:length], item])

    def before(self, index: int) -> Messages:
        """Return the first ``index`` messages."""
        return Messages(self._items, index)

    def find(self, message: MessageId) -> int | None:
        """Return the position of ``message``, or None. Searches from the end, where edits are likely."""
        items = self._items
        return next((i for i in range(self._length - 1, -1, -1) if items[i].id == message), None)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> TranscriptMessage: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TranscriptMessage]: ...

    def __getitem__(self, index: int | slice) -> TranscriptMessage | Sequence[TranscriptMessage]:
        """Return the message at a place, or a tuple of those in a slice."""
        if isinstance(index, slice):
            return tuple(self._items[place] for place in range(*index.indices(self._length)))
        index = operator.index(index)
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._items[index]

    def __iter__(self) -> Iterator[TranscriptMessage]:
        items = self._items
        return (items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Messages):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class Transcript(Struct, frozen=True, kw_only=True):
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
    return Transcript(messages=Messages(), queued={}, results={}, arguments={}, policies={})
