"""The tables, declared once for both databases. The migrations must give the same catalog; a test compares.

This is the declaration of the schema. The back ends speak to it in SQL of their own, so nothing here is imported when a
chat runs. Times are integer microseconds UTC, payloads are bytes. Text is ordered by code point.

Rows refer to chats without foreign keys: an append would pay for each, and a chat is deleted whole by one statement.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    text,
)
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from store.types import identifier, transaction


class Table(SQLModel, registry=registry()):
    """Base of the tables, with metadata of their own: an application's SQLModel tables stay apart from ours."""


class ChatRow(Table, table=True):
    """The header of a chat: control as bytes, and what queries need, all derived from the fold.

    ``ready_at`` is derived by the store: since when the chat wants a worker or when it will, NULL if it never does, so
    that the indexes for workers leave out all idle chats. No indexed column changes from step to step of a turn, and
    columns that seldom change come first: PostgreSQL then writes the new row beside the old one, without touching an
    index, and logs only what differs.
    """

    __tablename__ = "chats"
    __table_args__ = (
        # Read backwards. New entries come at the end: at the front, pages would be split in halves and stay so.
        Index("ix_chats_listed", "listed_at", text("chat DESC")),
        Index("ix_chats_owner", "owner", "listed_at", text("chat DESC")),
        Index(
            "ix_chats_ready",
            "status",
            "ready_at",
            sqlite_where=text("ready_at IS NOT NULL"),
            # Running chats are found by their holder.
            postgresql_where=text("ready_at IS NOT NULL AND status <> 'running'"),
        ),
        Index(
            "ix_chats_ready_owner",
            "status",
            "owner",
            "ready_at",
            sqlite_where=text("ready_at IS NOT NULL"),
            postgresql_where=text("ready_at IS NOT NULL AND status = 'pending'"),
        ),
        Index(
            "ix_chats_holder",
            "holder",
            sqlite_where=text("holder IS NOT NULL AND ready_at IS NOT NULL"),
            postgresql_where=text("holder IS NOT NULL AND ready_at IS NOT NULL"),
        ),
        Index(
            "ix_chats_parent",
            "parent",
            sqlite_where=text("parent IS NOT NULL"),
            postgresql_where=text("parent IS NOT NULL"),
        ),
        # Room in each page for new rows beside the old ones.
        {"postgresql_with": {"fillfactor": 60}},
    )

    chat: str = Field(sa_column=Column(identifier(), primary_key=True))
    owner: str = Field(sa_column=Column(identifier(), nullable=False))
    agent: str = Field(sa_column=Column(identifier(), nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    title: str | None = Field(sa_column=Column(Text))
    labels: str = Field(sa_column=Column(Text, nullable=False))
    parent: str | None = Field(sa_column=Column(identifier()))
    pinned: bool = Field(sa_column=Column(Boolean, nullable=False))
    archived: bool = Field(sa_column=Column(Boolean, nullable=False))
    is_foreign: bool = Field(sa_column=Column(Boolean, nullable=False))
    reader_level: int = Field(sa_column=Column(Integer, nullable=False))
    holder: str | None = Field(sa_column=Column(identifier()))
    listed_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    ready_at: int | None = Field(sa_column=Column(BigInteger))
    due_at: int | None = Field(sa_column=Column(BigInteger))
    epoch: int = Field(sa_column=Column(BigInteger, nullable=False))
    status: str = Field(sa_column=Column(identifier(), nullable=False))
    interrupting: bool = Field(sa_column=Column(Boolean, nullable=False))
    queued: int = Field(sa_column=Column(Integer, nullable=False))
    queue_version: int = Field(sa_column=Column(BigInteger, nullable=False))
    attempt: int | None = Field(sa_column=Column(BigInteger))
    version: int = Field(sa_column=Column(BigInteger, nullable=False))
    history_version: int = Field(sa_column=Column(BigInteger, nullable=False))
    updated_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    control: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class EventRow(Table, table=True):
    """One event as it is hashed. ``tx`` and ``position`` order the global feed of all chats.

    Numbers stand first: PostgreSQL would fill up what comes before each, 12 bytes in every row.
    """

    __tablename__ = "chat_events"
    __table_args__ = (
        PrimaryKeyConstraint("chat", "version"),
        Index(
            "ix_chat_events_command",
            "chat",
            "command",
            unique=True,
            sqlite_where=text("command_index = 0"),
            postgresql_where=text("command_index = 0"),
        ),
        # One entry for each command, not for each event: the events of a command stand together.
        Index(
            "ix_chat_events_feed",
            "tx",
            "position",
            unique=True,
            sqlite_where=text("command_index = 0"),
            postgresql_where=text("command_index = 0"),
        ),
    )

    version: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    recorded_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    tx: int = Field(sa_column=Column(transaction(), nullable=False))
    position: int = Field(sa_column=Column(BigInteger, Identity(), nullable=False))
    schema_number: int = Field(sa_column=Column(Integer, nullable=False))
    command_index: int = Field(sa_column=Column(Integer, nullable=False))
    chat: str = Field(sa_column=Column(identifier(), primary_key=True))
    type: str = Field(sa_column=Column(Text, nullable=False))
    actor_kind: str = Field(sa_column=Column(Text, nullable=False))
    actor_id: str | None = Field(sa_column=Column(Text))
    source: str = Field(sa_column=Column(Text, nullable=False))
    dest: str = Field(sa_column=Column(Text, nullable=False))
    command: str = Field(sa_column=Column(identifier(), nullable=False))
    facts: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    content: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    fingerprint: bytes | None = Field(sa_column=Column(LargeBinary))


class SegmentRow(Table, table=True):
    """An immutable, compressed piece of a transcript: a cache, written once. See ``store.segments``."""

    __tablename__ = "segments"

    chat: str = Field(sa_column=Column(identifier(), primary_key=True))
    first_version: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    last_version: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    start: int = Field(sa_column=Column(BigInteger, nullable=False))
    count: int = Field(sa_column=Column(BigInteger, nullable=False))
    schema_number: int = Field(sa_column=Column(Integer, nullable=False))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class WorkerRow(Table, table=True):
    """The lease of one start of one worker process, in database time."""

    __tablename__ = "workers"

    worker: str = Field(sa_column=Column(identifier(), primary_key=True))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    note: bytes | None = Field(sa_column=Column(LargeBinary))


class PartialRow(Table, table=True):
    """A piece of an answer that is not committed yet."""

    __tablename__ = "chat_partials"

    chat: str = Field(sa_column=Column(identifier(), primary_key=True))
    history_version: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    attempt: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    n: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class RefusalRow(Table, table=True):
    """The last command on a chat that was refused, for people who ask why the chat does not move."""

    __tablename__ = "refusals"

    chat: str = Field(sa_column=Column(identifier(), primary_key=True))
    at: int = Field(sa_column=Column(BigInteger, nullable=False))
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class BlobRow(Table, table=True):
    """Bytes under their own SHA-256 (hex)."""

    __tablename__ = "blobs"

    digest: str = Field(sa_column=Column(identifier(), primary_key=True))
    data: bytes = Field(sa_column=Column(LargeBinary, nullable=False))


class BlobUseRow(Table, table=True):
    """A chat whose events refer to a blob. A blob without such a row is nobody's."""

    __tablename__ = "blob_uses"
    __table_args__ = (Index("ix_blob_uses_digest", "digest"),)

    chat: str = Field(sa_column=Column(identifier(), primary_key=True))
    digest: str = Field(sa_column=Column(identifier(), primary_key=True))


class LevelsRow(Table, table=True):
    """How neighbouring releases share the database, in one row. See ``store.schema``."""

    __tablename__ = "schema_levels"

    oldest: str = Field(sa_column=Column(Text, primary_key=True))
    write_level: int = Field(sa_column=Column(Integer, nullable=False))


class TombstoneRow(Table, table=True):
    """What is left of a deleted chat.

    ``position`` is the one that the deletion took in SQLite's feed, so that none is used again and other processes see
    the deletion; 0 on PostgreSQL, whose positions come from a sequence.
    """

    __tablename__ = "tombstones"
    __table_args__ = (Index("ix_tombstones_position", "position"),)

    chat: str = Field(sa_column=Column(identifier(), primary_key=True))
    version: int = Field(sa_column=Column(BigInteger, nullable=False))
    digest: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    deleted_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    position: int = Field(sa_column=Column(BigInteger, nullable=False))


metadata = Table.metadata
"""All tables of this module."""
