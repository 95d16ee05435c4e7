"""The first tables: chats, their events, segments, workers, partials, blobs, tombstones."""

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Identity, Integer, LargeBinary, PrimaryKeyConstraint, Text, text

from store.types import identifier, transaction

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables and indexes."""
    _chats()
    _events()
    op.create_table(
        "segments",
        Column("chat", identifier(), nullable=False),
        Column("first_version", BigInteger, nullable=False),
        Column("last_version", BigInteger, nullable=False),
        Column("schema_number", Integer, nullable=False),
        Column("data", LargeBinary, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        PrimaryKeyConstraint("chat", "first_version", "last_version"),
    )
    op.create_table(
        "workers",
        Column("worker", identifier(), nullable=False),
        Column("expires_at", BigInteger, nullable=False),
        PrimaryKeyConstraint("worker"),
    )
    op.create_table(
        "chat_partials",
        Column("chat", identifier(), nullable=False),
        Column("history_version", BigInteger, nullable=False),
        Column("attempt", BigInteger, nullable=False),
        Column("n", BigInteger, nullable=False),
        Column("data", LargeBinary, nullable=False),
        PrimaryKeyConstraint("chat", "history_version", "attempt", "n"),
    )
    op.create_table(
        "blobs",
        Column("digest", identifier(), nullable=False),
        Column("data", LargeBinary, nullable=False),
        PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "tombstones",
        Column("chat", identifier(), nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("deleted_at", BigInteger, nullable=False),
        Column("position", BigInteger, nullable=False),
        PrimaryKeyConstraint("chat"),
    )
    op.create_index("ix_tombstones_position", "tombstones", ["position"])


def _chats() -> None:
    op.create_table(
        "chats",
        Column("chat", identifier(), nullable=False),
        Column("owner", identifier(), nullable=False),
        Column("agent", identifier(), nullable=False),
        Column("status", identifier(), nullable=False),
        Column("interrupting", Boolean, nullable=False),
        Column("archived", Boolean, nullable=False),
        Column("queued", Integer, nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("history_version", BigInteger, nullable=False),
        Column("queue_version", BigInteger, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("holder", identifier()),
        Column("due_at", BigInteger),
        Column("ready_at", BigInteger),
        Column("created_at", BigInteger, nullable=False),
        Column("updated_at", BigInteger, nullable=False),
        Column("control", LargeBinary, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("title", Text),
        Column("labels", Text, nullable=False),
        Column("parent", identifier()),
        Column("pinned", Boolean, nullable=False),
        Column("is_foreign", Boolean, nullable=False),
        Column("reader_level", Integer, nullable=False),
        PrimaryKeyConstraint("chat"),
    )
    op.create_index("ix_chats_updated", "chats", [text("updated_at DESC"), "chat"])
    op.create_index("ix_chats_owner", "chats", ["owner", text("updated_at DESC"), "chat"])
    _partial_index("ix_chats_ready", "chats", ["status", "ready_at"], "ready_at IS NOT NULL")
    _partial_index("ix_chats_holder", "chats", ["holder"], "holder IS NOT NULL AND ready_at IS NOT NULL")
    _partial_index("ix_chats_parent", "chats", ["parent"], "parent IS NOT NULL")


def _events() -> None:
    op.create_table(
        "chat_events",
        Column("chat", identifier(), nullable=False),
        Column("version", BigInteger, nullable=False),
        Column("type", Text, nullable=False),
        Column("schema_number", Integer, nullable=False),
        Column("recorded_at", BigInteger, nullable=False),
        Column("actor_kind", Text, nullable=False),
        Column("actor_id", Text),
        Column("source", Text, nullable=False),
        Column("dest", Text, nullable=False),
        Column("command", identifier(), nullable=False),
        Column("command_index", Integer, nullable=False),
        Column("facts", LargeBinary, nullable=False),
        Column("content", LargeBinary, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("fingerprint", LargeBinary),
        Column("tx", transaction(), nullable=False),
        Column("position", BigInteger, Identity(), nullable=False),
        PrimaryKeyConstraint("chat", "version"),
    )
    _partial_index("ix_chat_events_command", "chat_events", ["chat", "command"], "command_index = 0", unique=True)
    op.create_index("ix_chat_events_feed", "chat_events", ["tx", "position"], unique=True)


def _partial_index(name: str, table: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))
