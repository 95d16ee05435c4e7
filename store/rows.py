"""Rows of the SQL back ends: which columns in which order, and how headers and events become rows and come back.

Owns the order of columns, which both back ends rely on, and what is packed on its way. What one driver alone treats in
its own way is left to it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Final, cast

import msgspec

from events.envelope import Envelope, SourceStatus, Status, StoredEvent
from events.records import Actor, ActorKind
from store.auditing import EventPlace
from store.columns import BYTES, EVENTS, FLAG, HEADERS, MAYBE_NUMBER, MAYBE_TEXT, NUMBER, TEXT, check_row
from store.contract import Header, NewEvent, PartialChunk, Segment
from store.errors import MalformedRow
from store.notes import RefusalNote, WorkerNote
from store.packing import CannotUnpack, pack, unpack
from store.rules import ready_at
from store.shortening import LONG_KIND, LONG_STATUS, LONG_TYPE, SHORT_KIND, SHORT_STATUS, SHORT_TYPE

HEADER_COLUMNS: Final = (
    "chat", "owner", "agent", "status", "interrupting", "archived", "queued", "version", "history_version",
    "queue_version", "epoch", "holder", "due_at", "created_at", "updated_at", "control", "digest", "title", "labels",
    "parent", "pinned", "is_foreign", "reader_level", "listed_at", "attempt",
)  # fmt: skip
"""What is read of a header; a written one ends with ``ready_at``."""

WRITTEN_HEADER_COLUMNS: Final = (*HEADER_COLUMNS, "ready_at")

EVENT_COLUMNS: Final = (
    "version", "type", "schema_number", "recorded_at", "actor_kind", "actor_id", "source", "dest", "command",
    "command_index", "facts", "digest", "content",
)  # fmt: skip
"""What is read of an event; a written one ends with ``fingerprint``."""

WRITTEN_EVENT_COLUMNS: Final = (*EVENT_COLUMNS, "fingerprint")

_SMALL_FACTS: Final = 40
_SMALL_CONTENT: Final = 256
"""Bytes from which facts and control, and contents, are packed: smaller ones are not worth the time."""

_SHORT_FACTS: Final = 512
"""Bytes of facts from which the packed form is not remembered: what is longer hardly comes again."""

_HEADER_TYPES: Final = (
    TEXT, TEXT, TEXT, TEXT, FLAG, FLAG, NUMBER, NUMBER, NUMBER,
    NUMBER, NUMBER, MAYBE_TEXT, MAYBE_NUMBER, NUMBER, NUMBER, BYTES, BYTES, MAYBE_TEXT, TEXT,
    MAYBE_TEXT, FLAG, FLAG, NUMBER, NUMBER, MAYBE_NUMBER,
)  # fmt: skip
"""What each of ``HEADER_COLUMNS`` holds."""

_EVENT_TYPES: Final = (
    NUMBER, TEXT, NUMBER, NUMBER, TEXT, MAYBE_TEXT, TEXT, TEXT, TEXT,
    NUMBER, BYTES, BYTES, BYTES,
)  # fmt: skip
"""What each of ``EVENT_COLUMNS`` holds."""

_SEGMENT_COLUMNS: Final = (
    "chat", "first_version", "last_version", "start", "count", "schema_number", "digest", "data"
)  # fmt: skip
_SEGMENT_TYPES: Final = (TEXT, NUMBER, NUMBER, NUMBER, NUMBER, NUMBER, BYTES, BYTES)
"""What the fields of a segment hold."""

_PARTIAL_COLUMNS: Final = ("chat", "epoch", "history_version", "attempt", "n", "data")
_PARTIAL_TYPES: Final = (TEXT, NUMBER, NUMBER, NUMBER, NUMBER, BYTES)
"""What the fields of a chunk hold."""

_EVENT_SHAPES: Final = frozenset(product(*_EVENT_TYPES))
_HEADER_SHAPES: Final = frozenset(product(*_HEADER_TYPES))
"""The same as whole rows, so that one look tells whether a row is right."""


def header_row(header: Header) -> tuple[Any, ...]:
    """Return the values of ``WRITTEN_HEADER_COLUMNS``."""
    return (
        header.chat,
        header.owner,
        header.agent,
        header.status,
        header.interrupting,
        header.archived,
        header.queued,
        header.version,
        header.history_version,
        header.queue_version,
        header.epoch,
        header.holder,
        header.due_at,
        header.created_at,
        header.updated_at,
        pack(header.control, _SMALL_FACTS),
        header.digest,
        header.title,
        labels_text(header.labels),
        header.parent,
        header.pinned,
        header.foreign,
        header.reader_level,
        header.listed_at,
        header.attempt,
        ready_at(header),
    )


def header_of(row: Sequence[Any]) -> Header:
    """Return the header whose ``HEADER_COLUMNS`` are the first values of ``row``.

    Raises:
        MalformedRow: A value is of another type than was written (SQLite lets everything into a column).
    """
    if tuple(map(type, row[: len(HEADER_COLUMNS)])) not in _HEADER_SHAPES:
        check_row(HEADERS, HEADER_COLUMNS, _HEADER_TYPES, row, chat=row[0])
    try:
        control = unpack(row[15])
    except CannotUnpack as error:
        raise MalformedRow(row[0], None, f"column control: {error}", table=HEADERS, column="control") from None
    return Header(
        chat=row[0],
        owner=row[1],
        agent=row[2],
        status=row[3],
        interrupting=bool(row[4]),
        archived=bool(row[5]),
        queued=row[6],
        version=row[7],
        history_version=row[8],
        queue_version=row[9],
        epoch=row[10],
        holder=row[11],
        due_at=row[12],
        created_at=row[13],
        updated_at=row[14],
        control=control,
        digest=row[16],
        title=row[17],
        labels=_labels(row[0], row[18]),
        parent=row[19],
        pinned=bool(row[20]),
        foreign=bool(row[21]),
        reader_level=row[22],
        listed_at=row[23],
        attempt=row[24],
    )


def event_row(new: NewEvent) -> tuple[Any, ...]:
    """Return the values of ``WRITTEN_EVENT_COLUMNS``."""
    stored = new.stored
    envelope, content = stored.envelope, stored.content
    actor = envelope.actor
    return (
        envelope.version,
        SHORT_TYPE.get(envelope.type, envelope.type),
        envelope.schema,
        envelope.recorded_at,
        SHORT_KIND.get(actor.kind, actor.kind),
        actor.id,
        SHORT_STATUS.get(envelope.source, envelope.source),
        SHORT_STATUS.get(envelope.dest, envelope.dest),
        envelope.command,
        envelope.index,
        _facts_value(stored.facts) if len(stored.facts) < _SHORT_FACTS else pack(stored.facts, _SMALL_FACTS),
        stored.digest,
        content_value(content) if content else content,
        # Empty, not NULL: a row of PostgreSQL without any NULL is 8 bytes shorter.
        new.fingerprint or b"",
    )


@lru_cache(maxsize=512)
def _facts_value(facts: bytes) -> bytes:
    # The decisions of an agent are the same few from chat to chat: what they take is packed once.
    return pack(facts, _SMALL_FACTS)


def event_of(chat: str, row: Sequence[Any]) -> StoredEvent:
    """Return the event of ``chat`` whose ``EVENT_COLUMNS`` are the values of ``row``.

    Raises:
        MalformedRow: A value is of another type than was written (SQLite lets everything into a column).
    """
    if tuple(map(type, row)) not in _EVENT_SHAPES:
        check_row(EVENTS, EVENT_COLUMNS, _EVENT_TYPES, row, chat=chat, version=row[0])
    try:
        facts, content = unpack(row[10]), unpack(row[12])
    except CannotUnpack as error:
        raise MalformedRow(chat, row[0], f"column facts or content: {error}", table=EVENTS) from None
    return StoredEvent(
        envelope=Envelope(
            version=row[0],
            type=LONG_TYPE.get(row[1], row[1]),
            schema=row[2],
            recorded_at=row[3],
            actor=_actor(row[4], row[5]),
            source=cast(SourceStatus, LONG_STATUS.get(row[6], row[6])),
            dest=cast(Status, LONG_STATUS.get(row[7], row[7])),
            command=row[8],
            index=row[9],
        ),
        facts=facts,
        digest=row[11],
        content=content,
    )


def event_place(chat: str, row: Sequence[Any]) -> EventPlace:
    """Return where the event of a row stands: version, tx, position, command_index.

    Raises:
        MalformedRow: A value is of another type than was written.
    """
    check_row(EVENTS, ("version", "tx", "position", "command_index"), (NUMBER,) * 4, row, chat=chat, version=row[0])
    return EventPlace(row[0], row[1], row[2], begins=row[3] == 0)


@lru_cache(maxsize=1024)
def _actor(kind: str, actor: str | None) -> Actor:
    return Actor(kind=cast(ActorKind, LONG_KIND.get(kind, kind)), id=actor)


def content_value(content: bytes) -> bytes:
    """Return the value of an event's ``content`` column."""
    return pack(content, _SMALL_CONTENT, text=True)


def partial_of(row: Sequence[Any]) -> PartialChunk:
    """Return the chunk of a row: chat, epoch, history_version, attempt, n, data.

    Raises:
        MalformedRow: A value is of another type than was written.
    """
    check_row("chat_partials", _PARTIAL_COLUMNS, _PARTIAL_TYPES, row, chat=row[0])
    return PartialChunk(chat=row[0], epoch=row[1], history_version=row[2], attempt=row[3], n=row[4], data=row[5])


def note_bytes(note: WorkerNote | RefusalNote | None) -> bytes | None:
    """Return a note as it is kept."""
    return None if note is None else msgspec.json.encode(note)


def worker_note(data: bytes | None) -> WorkerNote:
    """Return what a worker said of itself: nothing where the note is not as this release writes it."""
    try:
        return WorkerNote() if data is None else _WORKER_NOTES.decode(data)
    except _NO_NOTE:
        return WorkerNote()


def refusal_note(data: bytes) -> RefusalNote | None:
    """Return a refusal that was noted; None where the note is not as this release writes it."""
    try:
        return _REFUSAL_NOTES.decode(data)
    except _NO_NOTE:
        return None


_NO_NOTE: Final = (msgspec.MsgspecError, UnicodeError, TypeError)
"""What reading a note raises that another release wrote, or nobody: notes are for people, nothing may fail by one."""

_WORKER_NOTES: Final = msgspec.json.Decoder(WorkerNote)
_REFUSAL_NOTES: Final = msgspec.json.Decoder(RefusalNote)


def segment_of(row: Sequence[Any]) -> Segment:
    """Return the segment whose fields, in their order, are the values of ``row``.

    Raises:
        MalformedRow: A value is of another type than was written.
    """
    check_row("segments", _SEGMENT_COLUMNS, _SEGMENT_TYPES, row, chat=row[0], version=row[2])
    return Segment(
        chat=row[0],
        first_version=row[1],
        last_version=row[2],
        start=row[3],
        count=row[4],
        schema=row[5],
        digest=row[6],
        data=row[7],
    )


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as JSON text that the JSON functions of both databases take (they choke on NUL)."""
    if not labels:
        return "{}"
    return msgspec.json.encode({escaped(key): escaped(value) for key, value in labels.items()}).decode()


def _labels(chat: str, text: str) -> dict[str, str]:
    if text == "{}":
        return {}
    try:
        labels = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise MalformedRow(chat, None, f"labels: {error}", table=HEADERS, column="labels") from None
    return {unescaped(key): unescaped(value) for key, value in labels.items()}


def escaped(text: str) -> str:
    """Return ``text`` without NUL, reversibly: U+0001 becomes an escape sign before 0 (for NUL) and 1 (for itself)."""
    if "\x00" in text or "\x01" in text:
        return text.replace("\x01", "\x011").replace("\x00", "\x010")
    return text


def unescaped(text: str) -> str:
    """Return what :func:`escaped` was given."""
    return text.replace("\x010", "\x00").replace("\x011", "\x01") if "\x01" in text else text
