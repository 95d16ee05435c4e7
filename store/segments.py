"""Segments: what is in one, how it is read back, and which of those that are kept make a chain.

A segment's data is a checksum, a compressed head and compressed messages. The head holds the rest of the state at the
segment's last version (control with its contents, bodies behind control's ids) and the digest that the log had where
the segment begins. So a chain is tied together, and the log's digest at the last version of its newest segment ties all
of it to the log. Contents that lie in blobs stay there: the head names them.

A segment is never trusted: whatever does not fit is :class:`UnfitSegment`, and the log, which has all of it, is folded
instead. Where segments are read and written is left to ``store.loading`` and ``store.building``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, final

import msgspec
import zstandard
from msgspec import Raw, Struct

from events.codec import DECODE_ERRORS
from events.content import Absent, Content, size_of
from events.control import Control
from events.digest import GENESIS
from events.ids import CallKey, ChatId, MessageId
from events.messages import QueuedMessage, share_names
from events.parts import ToolResultPart
from events.records import Policy, share_policy
from events.state import ChatState
from events.transcript import Messages, Transcript, TranscriptMessage
from store.contract import Segment
from store.errors import StoreError

SCHEMA: Final = 1
"""How data is written here. A change of what follows, or of any struct of a state, takes the next number."""

_LEVEL: Final = 3
_CHECKSUM_BYTES: Final = 16
_LENGTH_BYTES: Final = 4
_LARGE: Final = 16_384
"""Bytes of a content from which on it may lie in a blob."""

_NO_BLOBS: Final[Mapping[str, bytes]] = MappingProxyType({})
_PLAIN: Final = msgspec.json.Decoder()


class UnfitSegment(StoreError):
    """A segment cannot be used: another schema, changed bytes, or another log than the one that is there."""


class OpenedSegment(Struct, frozen=True, kw_only=True):
    """A segment whose bytes are as they were written.

    Attributes:
        segment: It.
        previous: The log's digest at the version before its first.
        blobs: Digests (hex) of the blobs that its contents lie in.
        rest: The state at its last version without messages, as JSON.
        messages: Its messages, as JSON.
    """

    segment: Segment
    previous: bytes
    blobs: tuple[str, ...]
    rest: Raw
    messages: bytes


class _Head(Struct, frozen=True):
    previous: bytes
    blobs: tuple[str, ...]
    rest: Raw


class _Rest(Struct, frozen=True):
    """A state without its messages."""

    control: Control
    queued: dict[MessageId, QueuedMessage]
    results: dict[CallKey, ToolResultPart]
    arguments: dict[CallKey, Content]
    policies: dict[str, Policy]
    title: Content | None
    hint: Content | None
    turn_label: Content | None = None


_HEAD: Final = msgspec.json.Decoder(_Head)


@final
class _Tools:
    """An encoder and decoders with what their hooks read and write. Serves one call at a time.

    A content is written as its text, where it is one and its size is that of the text, else as ``[0, value, size]``,
    ``[1, size]`` (erased) or ``[2, digest of its blob, size]``.
    """

    def __init__(self) -> None:
        self.blobs: Mapping[str, bytes] = _NO_BLOBS
        self.known: frozenset[str] = frozenset()
        self.large: dict[str, None] = {}
        self.encoder = msgspec.json.Encoder(enc_hook=self._write)
        self.messages = msgspec.json.Decoder(list[TranscriptMessage], dec_hook=self._read)
        self.rest = msgspec.json.Decoder(_Rest, dec_hook=self._read)

    def _write(self, content: object) -> Any:
        if not isinstance(content, Content):
            raise TypeError(f"{type(content).__name__} is no part of a state")
        size = content.size
        if content.erased:
            return (1, size)
        value = content.value
        if size >= _LARGE:
            digest = hashlib.sha256(msgspec.json.encode(value)).hexdigest()
            self.large[digest] = None
            if digest in self.known:
                return (2, digest, size)
        return value if isinstance(value, str) and size == size_of(value) else (0, value, size)

    def _read(self, _type: type, written: Any) -> Content:
        if type(written) is str:
            return Content(written, len(written) if written.isascii() else None)
        match written:
            case [0, value, int(size)]:
                return Content(value, size)
            case [1, int(size)]:
                return Content(Absent.ERASED, size)
            case [2, str(digest), int(size)]:
                return Content(_PLAIN.decode(self.blobs[digest]), size)
            case _:
                raise ValueError("not a content")


_IDLE: Final[list[_Tools]] = []
"""Tools that no call has: segments are made and read in many threads."""


def _borrow() -> _Tools:
    try:
        return _IDLE.pop()  # atomic, as is append
    except IndexError:
        return _Tools()


def _give_back(tools: _Tools) -> None:
    tools.blobs, tools.known, tools.large = _NO_BLOBS, frozenset(), {}
    _IDLE.append(tools)


class MadeSegment(Struct, frozen=True, kw_only=True):
    """A new segment.

    ``large``: digests (hex) of large contents that are written in it; of those, it should name what lies in blobs.
    ``raw_bytes``: its size before it was compressed.
    """

    segment: Segment
    large: frozenset[str]
    raw_bytes: int


def make_segment(
    chat: ChatId, state: ChatState, digest: bytes, base: Segment | None, known: frozenset[str] = frozenset()
) -> MadeSegment:
    """Make the segment of what ``state`` has beyond ``base``.

    Args:
        chat: The chat's id in the store.
        state: A state with its transcript.
        digest: The log's digest at the state's version.
        base: The segment that it continues: its messages are the first of the state's. None for the first of a chain.
        known: Blobs (digests in hex) that are kept: contents that lie there are named, not written.

    Raises:
        ContentUnavailable: A content was not loaded. Erased ones stay erased.
    """
    transcript, start = state.need_transcript("make a segment"), end_of(base)
    tools = _borrow()
    try:
        tools.known = known
        messages = tools.encoder.encode(transcript.messages[start:])
        rest = tools.encoder.encode(_rest_of(state))
        large = frozenset(tools.large)
    finally:
        _give_back(tools)
    previous = GENESIS if base is None else base.digest
    head = msgspec.json.encode(_Head(previous=previous, blobs=tuple(sorted(large & known)), rest=Raw(rest)))
    compress = zstandard.ZstdCompressor(level=_LEVEL).compress
    packed = compress(head)
    segment = Segment(
        chat=chat,
        first_version=1 if base is None else base.last_version + 1,
        last_version=state.control.version,
        start=start,
        count=len(transcript.messages) - start,
        schema=SCHEMA,
        digest=digest,
        data=len(packed).to_bytes(_LENGTH_BYTES, "big") + packed + compress(messages),
    )
    whole = msgspec.structs.replace(segment, data=_checksum(segment, segment.data) + segment.data)
    return MadeSegment(segment=whole, large=large - known, raw_bytes=len(head) + len(messages))


def open_segment(segment: Segment) -> OpenedSegment:
    """Check a segment's bytes and take it apart.

    Raises:
        UnfitSegment: It has another schema, or its bytes are not as they were written.
    """
    if segment.schema != SCHEMA:
        raise UnfitSegment(f"it has schema {segment.schema}, this release reads {SCHEMA}")
    body = segment.data[_CHECKSUM_BYTES:]
    if _checksum(segment, body) != segment.data[:_CHECKSUM_BYTES]:
        raise UnfitSegment("its checksum does not hold")
    length = _LENGTH_BYTES + int.from_bytes(body[:_LENGTH_BYTES], "big")
    unpack = zstandard.ZstdDecompressor().decompress
    try:
        head = _HEAD.decode(unpack(body[_LENGTH_BYTES:length]))
        messages = unpack(body[length:])
    except (zstandard.ZstdError, msgspec.MsgspecError) as error:
        raise UnfitSegment(f"it cannot be read: {error}") from None
    return OpenedSegment(segment=segment, previous=head.previous, blobs=head.blobs, rest=head.rest, messages=messages)


def check_chain(chain: Sequence[OpenedSegment], digest: bytes | None) -> None:
    """Check that each segment goes on where the log was at the end of the one before it.

    Args:
        chain: What ``newest_chain`` gave, opened.
        digest: The log's digest at the last version of the newest one; None where the log has no such version.

    Raises:
        UnfitSegment: They were made of another log.
    """
    previous = GENESIS
    for opened in chain:
        if opened.previous != previous:
            raise UnfitSegment("it does not continue the one before it")
        previous = opened.segment.digest
    if previous != digest:
        raise UnfitSegment("it was made of another log")


def read_messages(opened: OpenedSegment, blobs: Mapping[str, bytes]) -> list[TranscriptMessage]:
    """Return the messages of a segment; ``blobs`` are those that it names.

    Raises:
        UnfitSegment: They are not as its header says, or a blob is missing.
    """
    tools = _borrow()
    try:
        tools.blobs = blobs
        messages = tools.messages.decode(opened.messages)
    except DECODE_ERRORS as error:
        raise UnfitSegment(f"its messages cannot be read: {_said(error)}") from None
    finally:
        _give_back(tools)
    if len(messages) != opened.segment.count:
        raise UnfitSegment(f"it has {len(messages)} messages instead of {opened.segment.count}")
    for item in messages:
        if item.message.step is not None:
            share_names(item.message.step)
    return messages


def read_state(opened: OpenedSegment, messages: list[TranscriptMessage], blobs: Mapping[str, bytes]) -> ChatState:
    """Return the state at the last version of a segment.

    Args:
        opened: The newest segment of a chain.
        messages: Those of the whole chain; the state keeps the list.
        blobs: Those that the segment names.

    Raises:
        UnfitSegment: It cannot be read, a blob is missing, or the messages are not those that it counts.
    """
    tools = _borrow()
    try:
        tools.blobs = blobs
        rest = tools.rest.decode(opened.rest)
    except DECODE_ERRORS as error:
        raise UnfitSegment(f"its state cannot be read: {_said(error)}") from None
    finally:
        _give_back(tools)
    if (rest.control.version, rest.control.indexes.messages) != (opened.segment.last_version, len(messages)):
        raise UnfitSegment("its state is not the one at its last version")
    transcript = Transcript(
        messages=Messages(messages),
        queued=rest.queued,
        results=rest.results,
        arguments=rest.arguments,
        policies={digest: share_policy(digest, policy) for digest, policy in rest.policies.items()},
        title=rest.title,
        turn_label=rest.turn_label,
        hint=rest.hint,
    )
    return ChatState(control=rest.control, transcript=transcript)


def compare(segment: Segment, state: ChatState, previous: bytes, digest: bytes, blobs: Mapping[str, bytes]) -> None:
    """Check that a segment holds what the log folds to.

    Args:
        segment: One of this release's schema.
        state: The fold of the log at its last version.
        previous: The log's digest at the version before its first, and
        digest: at its last.
        blobs: Those that it names, as are kept.

    Raises:
        UnfitSegment: It does not; says what is wrong.
        ContentUnavailable: It cannot be told: a content of the log is not in the store.
    """
    opened = open_segment(segment)
    if (opened.previous, segment.digest) != (previous, digest):
        raise UnfitSegment("it was made of another log")
    messages = read_messages(opened, blobs)
    own = state.messages[segment.start :]
    held = read_state(opened, [*state.messages[: segment.start], *messages], blobs)
    if _bytes(messages) != _bytes(list(own)):
        raise UnfitSegment("its messages are not those that the log folds to")
    if _bytes(_rest_of(held)) != _bytes(_rest_of(state)):
        raise UnfitSegment("its state is not the one that the log folds to")


def _bytes(value: list[TranscriptMessage] | _Rest) -> bytes:
    """Return the bytes of a part of a state, the same for the same log."""
    tools = _borrow()
    try:
        # The encoder leaves out a default only where it is the very same object: what was decoded has one per value.
        data = tools.encoder.encode(value)
        again = tools.rest.decode(data) if isinstance(value, _Rest) else tools.messages.decode(data)
        return tools.encoder.encode(again)
    finally:
        _give_back(tools)


def _rest_of(state: ChatState) -> _Rest:
    transcript = state.need_transcript("make a segment")
    return _Rest(
        control=state.control,
        queued=dict(transcript.queued),
        results=dict(transcript.results),
        arguments=dict(transcript.arguments),
        policies=dict(transcript.policies),
        title=transcript.title,
        turn_label=transcript.turn_label,
        hint=transcript.hint,
    )


def end_of(segment: Segment | None) -> int:
    """Return how many messages a chain holds whose newest segment is ``segment``."""
    return 0 if segment is None else segment.start + segment.count


def newest_chain(kept: Iterable[Segment], upto: int) -> list[Segment]:
    """Return the segments of this release that lead to the newest state at or before the version ``upto``, in order.

    Segments of another branch, of another release and such as lead nowhere are left out; empty where none is left.
    """
    before: dict[tuple[int, int], Segment | None] = {(0, 0): None}
    came: dict[tuple[int, int], tuple[int, int]] = {}
    newest = (0, 0)
    for segment in sorted(kept, key=lambda each: (each.last_version, each.first_version)):
        place, end = (segment.first_version - 1, segment.start), (segment.last_version, end_of(segment))
        fits = segment.schema == SCHEMA and segment.first_version <= segment.last_version <= upto
        if fits and place in before:
            before[end], came[end], newest = segment, place, end
    chain: list[Segment] = []
    while (segment_there := before[newest]) is not None:
        chain.append(segment_there)
        newest = came[newest]
    return chain[::-1]


def is_prefix(segment: Segment, messages: Messages) -> bool:
    """Whether what history was at the segment's last version is still its beginning.

    What is taken out of history never comes back, and what enters it enters at its end. So nothing was taken out where
    the message at the segment's end was there already.
    """
    end = end_of(segment)
    return end <= len(messages) and (end == 0 or messages[end - 1].version <= segment.last_version)


def _checksum(segment: Segment, body: bytes) -> bytes:
    place = (segment.chat, segment.first_version, segment.last_version, segment.start, segment.count, segment.schema)
    return hashlib.blake2b(msgspec.json.encode((*place, segment.digest)) + body, digest_size=_CHECKSUM_BYTES).digest()


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
