"""Log files: one chat's log as JSON Lines, to export, keep beside a test, send, and import.

Line 1 is the header; then one line per event, the envelope's fields beside facts and content; then, if they were
packed, one line per blob. Facts, content and blobs are JSON without line breaks, so they stand in their lines byte
for byte as they are stored, readable and easy to compare; reading gives back those very bytes. Pure: lines come in
and go out, files are opened elsewhere. Reading checks the form, and the header against the events;
``events.digest.verify_chain`` checks what the events say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from events.codec import decode
from events.digest import GENESIS
from events.envelope import Envelope, Recorded, SourceStatus, Status, StoredEvent
from events.errors import EventsError, LogFileError, MalformedEvent
from events.ids import ChatId, CommandId
from events.records import Actor
from events.vocabulary import ChatCreated, ChatForked

FORMAT: Final = 1
"""The number of this file format."""

_NO_BLOBS: Final[Mapping[str, bytes]] = MappingProxyType({})


class LogHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Line 1 of a log file.

    Attributes:
        chatfold_log: Number of the file format.
        chat: Id of the chat as its first event has it, also where it was imported under another.
        release: Release that exported it.
        events: Number of events.
        head: Digest (hex) of the last event; of 32 zero bytes where there is none.
        flags: Behaviour flags of the chat, as its first event has them.
        blobs: Number of packed blobs.
        redacted: Mark of a log whose content was replaced (``chatfold.redacting``); absent from the line of any other.
            Digests of prompts in its facts are those of the original.
    """

    chatfold_log: int = FORMAT
    chat: ChatId
    release: str
    events: int
    head: str
    flags: tuple[int, ...] = ()
    blobs: int = 0
    redacted: str | UnsetType = UNSET

    @property
    def is_redacted(self) -> bool:
        """Whether its content is not what was said."""
        return self.redacted is not UNSET


class LogFile(Struct, frozen=True, kw_only=True):
    """What a log file holds. ``blobs`` are the packed ones, by digest (hex)."""

    header: LogHeader
    events: tuple[StoredEvent, ...]
    blobs: Mapping[str, bytes]


class _EventLine(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    version: int
    type: str
    schema: int
    recorded_at: int
    actor: Actor
    source: SourceStatus
    dest: Status
    command: str
    index: int
    facts: Raw
    content: Raw | UnsetType = UNSET
    digest: str


class _BlobLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    blob: str
    value: Raw


_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
"""Byte order marks of UTF-8, UTF-16 and UTF-32; that of UTF-32, little end first, begins as that of UTF-16 does."""
_T = TypeVar("_T")
_ENCODER: Final = msgspec.json.Encoder()
_HEADER: Final = msgspec.json.Decoder(LogHeader)
_EVENT: Final = msgspec.json.Decoder(_EventLine)
_BLOB: Final = msgspec.json.Decoder(_BlobLine)
_PROBE: Final = msgspec.json.Decoder()


def header_of(
    chat: ChatId,
    events: Sequence[StoredEvent],
    *,
    release: str,
    flags: tuple[int, ...] = (),
    blobs: Mapping[str, bytes] = _NO_BLOBS,
    redacted: str | None = None,
) -> LogHeader:
    """Return the header of a log.

    Args:
        chat: Id of the chat, for a log whose first event does not say it.
        events: All its events.
        release: The release that exports it.
        flags: The chat's behaviour flags, likewise.
        blobs: Blobs that are going to be packed.
        redacted: Mark of a redacted log.
    """
    if (own := birth(events)) is not None:
        chat, flags = ChatId(own.chat), own.flags
    head = events[-1].digest if events else GENESIS
    return LogHeader(
        chat=chat,
        release=release,
        events=len(events),
        head=head.hex(),
        flags=flags,
        blobs=len(blobs),
        redacted=UNSET if redacted is None else redacted,
    )


def birth(events: Sequence[StoredEvent]) -> ChatCreated | ChatForked | None:
    """Return the event that a log begins with; None where it begins otherwise, or that event cannot be read."""
    if not events:
        return None
    try:
        first = decode(events[0], content=False).event
    except EventsError:
        return None
    return first if isinstance(first, ChatCreated | ChatForked) else None


def write_log(
    header: LogHeader, events: Iterable[StoredEvent], blobs: Mapping[str, bytes] = _NO_BLOBS
) -> Iterator[bytes]:
    """Yield the lines of a log file, each with its line break.

    Args:
        header: What ``header_of`` gives, or a store knows.
        events: All events in order, as stored; they may be read while lines are written.
        blobs: Blobs to pack, by digest (hex).

    Raises:
        LogFileError: At the end, where the events (number, last digest) or the number of blobs are not the header's.
        MalformedEvent: As ``event_line``.
    """
    yield _ENCODER.encode(header) + b"\n"
    count, head = 0, GENESIS.hex()
    for stored in events:
        yield event_line(stored) + b"\n"
        count, head = count + 1, stored.digest.hex()
    for digest, value in sorted(blobs.items()):
        yield _ENCODER.encode(_BlobLine(blob=digest, value=_embedded(value, f"blob {digest}"))) + b"\n"
    _check_totals(header, count, head, len(blobs), "log", 1 + count + len(blobs))


def event_line(stored: StoredEvent) -> bytes:
    """Return a stored event as one JSON object, facts and content byte for byte, without a line break.

    Raises:
        MalformedEvent: The stored bytes have line breaks, or blanks around them.
    """
    envelope = stored.envelope
    where = f"version {envelope.version}"
    return _ENCODER.encode(
        _EventLine(
            version=envelope.version,
            type=envelope.type,
            schema=envelope.schema,
            recorded_at=envelope.recorded_at,
            actor=envelope.actor,
            source=envelope.source,
            dest=envelope.dest,
            command=envelope.command,
            index=envelope.index,
            facts=_embedded(stored.facts, where),
            content=_embedded(stored.content, where) if stored.content else UNSET,
            digest=stored.digest.hex(),
        )
    )


def parse_event_line(line: bytes) -> StoredEvent:
    """Read what ``event_line`` gave.

    Raises:
        msgspec.MsgspecError, ValueError, RecursionError: It is not that.
    """
    parsed = _EVENT.decode(line)
    digest = bytes.fromhex(parsed.digest)
    if len(digest) != len(GENESIS) or digest.hex() != parsed.digest:
        raise ValueError(f"the digest is not {len(GENESIS)} bytes in lower-case hexadecimal digits")
    envelope = Envelope(
        version=parsed.version,
        type=parsed.type,
        schema=parsed.schema,
        recorded_at=parsed.recorded_at,
        actor=parsed.actor,
        source=parsed.source,
        dest=parsed.dest,
        command=CommandId(parsed.command),
        index=parsed.index,
    )
    content = bytes(parsed.content) if isinstance(parsed.content, Raw) else b""
    return StoredEvent(envelope=envelope, facts=bytes(parsed.facts), content=content, digest=digest)


def read_log(lines: Iterable[bytes | str], name: str) -> LogFile:
    """Read a log file.

    Args:
        lines: Its lines, with or without their line breaks, as an open file yields them.
        name: The file's name, for errors.

    Raises:
        LogFileError: The file is empty, its first line is no header or of a newer format, a line is not UTF-8, cut
            off or no event, a key stands twice in it, or what the header says (number of events, last digest, chat and
            flags) is not what they say. Says the line.
    """
    numbered = enumerate(lines, 1)
    first = next(numbered, None)
    if first is None:
        raise LogFileError(name, 1, "the file is empty")
    header = read_header(first[1], name)
    events: list[StoredEvent] = []
    blobs: dict[str, bytes] = {}
    number = 1
    for number, line in numbered:
        raw = _text(line, name, number)
        if raw.startswith(b'{"blob":'):
            digest, value = _parse(_read_blob, raw, name, number)
            blobs[digest] = value
        elif blobs:
            raise LogFileError(name, number, "an event after the blobs, or no event at all")
        else:
            events.append(_parse(parse_event_line, raw, name, number))
    head = events[-1].digest.hex() if events else GENESIS.hex()
    _check_totals(header, len(events), head, len(blobs), name, number)
    _check_birth(header, birth(events), name)
    return LogFile(header=header, events=tuple(events), blobs=blobs)


def naming_lines(events: Iterable[Recorded], name: str) -> Iterator[Recorded]:
    """Yield the decoded events of a log file, from its first one on.

    Args:
        events: They, decoded as they are asked for.
        name: The file's name, for errors.

    Raises:
        LogFileError: One cannot be read; says in which line it is.
    """
    line = 2  # behind the header
    try:
        for recorded in events:
            yield recorded
            line += 1
    except EventsError as error:
        raise LogFileError(name, line, str(error)) from error


def read_header(first: bytes | str, name: str) -> LogHeader:
    """Read line 1 of a log file.

    Args:
        first: It, with or without its line break.
        name: The file's name, for errors.

    Raises:
        LogFileError: It is no header, or one of a newer format.
    """
    if first.startswith("\ufeff") if isinstance(first, str) else first.startswith(_MARKS):
        raise LogFileError(name, 1, "the file begins with a byte order mark: save it as UTF-8 without one")
    line = _text(first, name, 1)
    try:
        probe: Any = _PROBE.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        probe = None
    number = probe.get("chatfold_log") if isinstance(probe, dict) else None
    if type(number) is not int or number < 1:
        raise LogFileError(name, 1, 'no header: the first line of a log is {"chatfold_log": 1, ...}')
    if number > FORMAT:
        raise LogFileError(name, 1, f"format {number}, this release reads up to {FORMAT}: use a newer release")
    try:
        header = _HEADER.decode(line)
        check_keys(line)
    except (msgspec.MsgspecError, ValueError) as error:
        raise LogFileError(name, 1, f"wrong header: {error}") from None
    return header


def _parse(reader: Callable[[bytes], _T], line: bytes, name: str, number: int) -> _T:
    try:
        parsed = reader(line)
        check_keys(line)
        return parsed
    except msgspec.ValidationError as error:
        if number > 1 and line.startswith(b'{"chatfold_log":'):
            raise LogFileError(name, number, "a second header: these are two logs in one file") from None
        raise LogFileError(name, number, f"not a line of a log: {error}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        cut = line.startswith(b"{") and not line.endswith(b"}")
        raise LogFileError(name, number, "the line is cut off" if cut else f"not JSON: {error}") from None
    except ValueError as error:
        raise LogFileError(name, number, str(error)) from None


def check_keys(line: bytes) -> None:
    """Refuse an object in which a key stands twice: readers differ in which of the two they take.

    Raises:
        ValueError: One does; names the key.
        RecursionError: The line is nested deeper than can be read.
    """
    if not _is_canonical(line):
        # Numbers are of no interest here, and some are longer than Python likes to read.
        json.loads(line.decode(), object_pairs_hook=_once, parse_int=len, parse_float=len)


def _is_canonical(line: bytes) -> bool:
    """Whether a line is what the encoder makes of what the line says; as all of ours are.

    It has no key twice then: reading drops all but one, so what is written of it has each once.
    """
    try:
        return _ENCODER.encode(_PROBE.decode(line)) == line
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return False  # nothing is said of it: the one who looks at each key says what is wrong


def _once(pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in its object")


def _read_blob(line: bytes) -> tuple[str, bytes]:
    parsed = _BLOB.decode(line)
    value = bytes(parsed.value)
    if hashlib.sha256(value).hexdigest() != parsed.blob:
        raise ValueError(f"the bytes of blob {parsed.blob} have another digest")
    return parsed.blob, value


def _text(line: bytes | str, name: str, number: int) -> bytes:
    """Return a line as UTF-8 bytes without its line break."""
    try:
        raw = line.encode() if isinstance(line, str) else line
        raw.decode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise LogFileError(name, number, f"not UTF-8: {error.reason} at {error.start}") from None
    raw = raw.rstrip(b"\r\n")
    if not raw.strip():
        raise LogFileError(name, number, "the line is empty")
    return raw


def _embedded(value: bytes, where: str) -> Raw:
    """Let stored JSON stand in a line as it is; what would not come back byte for byte is none of ``events.codec``."""
    if b"\n" in value or b"\r" in value or value.strip() != value or not value:
        raise MalformedEvent(where, "stored bytes with line breaks or blanks around them")
    return Raw(value)


def _check_birth(header: LogHeader, first: ChatCreated | ChatForked | None, name: str) -> None:
    if first is None:
        return
    if header.chat != first.chat:
        raise LogFileError(name, 1, f"the header's chat is {header.chat!r}, the first event's {first.chat!r}")
    if header.flags != first.flags:
        raise LogFileError(name, 1, f"the header's flags are {list(header.flags)}, the chat's {list(first.flags)}")


def _check_totals(header: LogHeader, events: int, head: str, blobs: int, name: str, line: int) -> None:
    if events != header.events:
        raise LogFileError(name, line, f"{events} events, the header says {header.events}: lines are missing or added")
    if head != header.head:
        raise LogFileError(name, line, "the last event's digest is not the header's")
    if blobs != header.blobs:
        raise LogFileError(name, line, f"{blobs} blobs, the header says {header.blobs}: lines are missing or added")
