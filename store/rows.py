"""Rows of the SQL back ends: which columns in which order, and how headers and events become rows and come back.

Owns the order of columns, which both back ends rely on. What one driver alone treats in its own way is left to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from events.envelope import Envelope, StoredEvent
from events.records import Actor
from store.contract import Header, NewEvent
from store.rules import ready_at

HEADER_COLUMNS: Final = (
    "chat", "owner", "agent", "status", "interrupting", "archived", "queued", "version", "history_version",
    "queue_version", "epoch", "holder", "due_at", "created_at", "updated_at", "control", "digest", "title", "labels",
    "parent", "pinned", "is_foreign", "reader_level",
)  # fmt: skip
"""What is read of a header; a written one ends with ``ready_at``."""

WRITTEN_HEADER_COLUMNS: Final = (*HEADER_COLUMNS, "ready_at")

EVENT_COLUMNS: Final = (
    "version", "type", "schema_number", "recorded_at", "actor_kind", "actor_id", "source", "dest", "command",
    "command_index", "facts", "digest", "content",
)  # fmt: skip
"""What is read of an event; a written one ends with ``fingerprint``."""

WRITTEN_EVENT_COLUMNS: Final = (*EVENT_COLUMNS, "fingerprint")


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
        header.control,
        header.digest,
        header.title,
        labels_text(header.labels),
        header.parent,
        header.pinned,
        header.foreign,
        header.reader_level,
        ready_at(header),
    )


def header_of(row: Sequence[Any]) -> Header:
    """Return the header whose ``HEADER_COLUMNS`` are the first values of ``row``."""
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
        control=row[15],
        digest=row[16],
        title=row[17],
        labels=_labels(row[18]),
        parent=row[19],
        pinned=bool(row[20]),
        foreign=bool(row[21]),
        reader_level=row[22],
    )


def event_row(new: NewEvent) -> tuple[Any, ...]:
    """Return the values of ``WRITTEN_EVENT_COLUMNS``."""
    stored, envelope = new.stored, new.stored.envelope
    return (
        envelope.version,
        envelope.type,
        envelope.schema,
        envelope.recorded_at,
        envelope.actor.kind,
        envelope.actor.id,
        envelope.source,
        envelope.dest,
        envelope.command,
        envelope.index,
        stored.facts,
        stored.digest,
        stored.content,
        new.fingerprint,
    )


def event_of(row: Sequence[Any]) -> StoredEvent:
    """Return the event whose ``EVENT_COLUMNS`` are the values of ``row``."""
    return StoredEvent(
        envelope=Envelope(
            version=row[0],
            type=row[1],
            schema=row[2],
            recorded_at=row[3],
            actor=Actor(kind=row[4], id=row[5]),
            source=row[6],
            dest=row[7],
            command=row[8],
            index=row[9],
        ),
        facts=row[10],
        digest=row[11],
        content=row[12],
    )


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as JSON text that the JSON functions of both databases take (they choke on NUL)."""
    if not labels:
        return "{}"
    return msgspec.json.encode({escaped(key): escaped(value) for key, value in labels.items()}).decode()


def _labels(text: str) -> dict[str, str]:
    if text == "{}":
        return {}
    return {unescaped(key): unescaped(value) for key, value in msgspec.json.decode(text, type=dict[str, str]).items()}


def escaped(text: str) -> str:
    """Return ``text`` without NUL, reversibly: U+0001 becomes an escape sign before 0 (for NUL) and 1 (for itself)."""
    if "\x00" in text or "\x01" in text:
        return text.replace("\x01", "\x011").replace("\x00", "\x010")
    return text


def unescaped(text: str) -> str:
    """Return what :func:`escaped` was given."""
    return text.replace("\x010", "\x00").replace("\x011", "\x01") if "\x01" in text else text
