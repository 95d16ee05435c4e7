"""The transcript: messages of a chat in history order, and the bodies that control names by id alone.

Structurally shared (``events.shared``), so old states stay valid and cost nothing, and folding a long log is linear.

Most messages are plain: one text, of a user or as an answer. Four objects around each text would take about as much as
a short text does, so a history that stays in memory keeps plain messages as their text (``Messages.shrink``) and makes
the rest anew for whoever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, final, get_args, overload

import msgspec
from msgspec import Struct

from events.content import Content
from events.ids import CallKey, MessageId
from events.messages import FinishReason, KeptResponse, Message, QueuedMessage, Step, Usage
from events.parts import TextPart, ToolResultPart
from events.records import Policy
from events.shared import SharedSequence
from events.sharing import share_name

_NOTHING: Final[Mapping[Any, Any]] = MappingProxyType({})


class TranscriptMessage(Struct, frozen=True, gc=False):
    """A message in history: its id, the message, and the version of the event that put it there."""

    id: MessageId
    message: Message
    version: int


class _Said(Struct, frozen=True, gc=False):
    """A user's plain message in history."""

    id: MessageId
    version: int
    text: str


class _Answered(Struct, frozen=True, gc=False):
    """A plain answer in history, with its step as bytes: those take a third of what its objects do."""

    id: MessageId
    version: int
    text: str
    step: bytes


_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODE: Final = msgspec.msgpack.Decoder().decode

# A segment leaves out what is its default, and the encoder knows a default by identity: a step that is made anew must
# give the bytes that it gave before.
_FINISH_REASONS: Final[dict[FinishReason, FinishReason]] = {reason: reason for reason in get_args(FinishReason)}
_NO_USAGE: Final = Step(provider="", model="").usage


def _row_of(step: Step) -> bytes:
    """Return the fields of a step without metadata in a row.

    Raises:
        OverflowError: An integer of it has more than 64 bits, as only a log that was tampered with has.
    """
    usage, kept = step.usage, step.kept
    tokens = (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning)
    return _ENCODE(
        (
            step.provider,
            step.model,
            step.finish_reason,
            step.response_id,
            step.started_at,
            step.first_part_at,
            step.ended_at,
            step.cost_micros,
            step.unmetered,
            step.continued,
            None if kept is None else (kept.before, kept.options),
            None if usage is _NO_USAGE else tokens,
        )
    )


def _step_of(data: bytes) -> Step:
    provider, model, finish_reason, response_id, started_at, first_part_at, ended_at, *rest = _DECODE(data)
    cost, unmetered, continued, kept, tokens = rest
    usage = _NO_USAGE
    if tokens is not None:
        given, made, read, written, reasoned = tokens
        usage = Usage(input=given, output=made, cache_read=read, cache_write=written, reasoning=reasoned)
    return Step(
        provider=share_name(provider),
        model=share_name(model),
        finish_reason=_FINISH_REASONS[finish_reason],
        usage=usage,
        response_id=response_id,
        started_at=started_at,
        first_part_at=first_part_at,
        ended_at=ended_at,
        cost_micros=cost,
        unmetered=unmetered,
        kept=None if kept is None else KeptResponse(before=kept[0], options=kept[1]),
        continued=continued,
    )


_Kept: TypeAlias = TranscriptMessage | _Said | _Answered


def plain_text(message: Message) -> str | None:
    """Return the text of a message that is nothing else: a user's, or the answer of a step; None of any other.

    Nor of one whose step has metadata, or took several requests.
    """
    parts = message.parts
    if len(parts) != 1 or type(part := parts[0]) is not TextPart or part.metadata is not None or part.repaired:
        return None
    if message.boundary is not None or message.context is not None or message.origin is not None:
        return None
    if message.author is not None or message.interrupted or message.visibility != "both":
        return None
    step = message.step
    if message.role != ("user" if step is None else "assistant"):
        return None
    if step is not None and not (step.metadata is None and step.context_tokens is None):
        return None
    content = part.text
    text = content.held
    if not isinstance(text, str):
        return None
    # A log that was tampered with may say any size.
    return text if content.size == (len(text) if text.isascii() else len(text.encode())) else None


def _shrunk(item: TranscriptMessage) -> _Kept:
    message = item.message
    text = plain_text(message)
    if text is None:
        return item
    if message.step is None:
        return _Said(item.id, item.version, text)
    try:
        return _Answered(item.id, item.version, text, _row_of(message.step))
    except OverflowError:
        return item


def _whole(kept: _Kept) -> TranscriptMessage:
    if isinstance(kept, TranscriptMessage):
        return kept
    parts = (TextPart(text=Content(kept.text)),)
    if isinstance(kept, _Said):
        message = Message(role="user", parts=parts)
    else:
        message = Message(role="assistant", parts=parts, step=_step_of(kept.step))
    return TranscriptMessage(kept.id, message, kept.version)


@final
class Messages(SharedSequence[TranscriptMessage]):
    """An immutable sequence of transcript messages with cheap append."""

    __slots__ = ()

    def find(self, message: MessageId) -> int | None:
        """Return the position of ``message``, or None. Searches from the end, where edits are likely."""
        items = self._items
        return next((i for i in range(self._length - 1, -1, -1) if items[i].id == message), None)

    def shrink(self, start: int = 0) -> None:
        """Keep the messages from ``start`` on in the least memory: nothing that is read of them is changed by it."""
        items: list[Any] = self._items
        for place in range(start, self._length):
            if type(items[place]) is TranscriptMessage:
                items[place] = _shrunk(items[place])

    def since(self, index: int) -> list[TranscriptMessage]:
        """Return the messages from ``index`` on."""
        return [_whole(item) for item in super().since(index)]

    @overload
    def __getitem__(self, index: int) -> TranscriptMessage: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[TranscriptMessage, ...]: ...

    def __getitem__(self, index: int | slice) -> TranscriptMessage | tuple[TranscriptMessage, ...]:
        """Return the message at a place, or a tuple of those in a slice."""
        if isinstance(index, slice):
            return tuple(map(_whole, super().__getitem__(index)))
        return _whole(super().__getitem__(index))

    def __iter__(self) -> Iterator[TranscriptMessage]:
        return map(_whole, super().__iter__())


class Transcript(Struct, frozen=True, kw_only=True, gc=False):
    """Messages, and the bodies behind control's ids.

    Attributes:
        messages: History in order.
        queued: Bodies of the queued messages.
        results: Recorded results of a batch that is not committed yet.
        arguments: Arguments that an approval replaced.
        policies: Recorded policies by digest.
        title: The chat's title.
        turn_label: What the latest turn that was labelled came to, in a few words.
        hint: The user's hint to the requested compaction.
    """

    messages: Messages
    queued: Mapping[MessageId, QueuedMessage]
    results: Mapping[CallKey, ToolResultPart]
    arguments: Mapping[CallKey, Content]
    policies: Mapping[str, Policy]
    title: Content | None = None
    turn_label: Content | None = None
    hint: Content | None = None


def empty_transcript() -> Transcript:
    """Return the transcript of a chat that does not exist yet."""
    return Transcript(messages=Messages(), queued=_NOTHING, results=_NOTHING, arguments=_NOTHING, policies=_NOTHING)
