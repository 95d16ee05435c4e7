"""Headers whose steps move no index, a feed index of one entry for each command, segments in chains, uses of blobs."""

from collections.abc import Iterator

import msgspec
import sqlalchemy as sa
from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Identity,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    text,
)

from events.contentlist import content_blobs
from store.types import identifier, transaction

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_KEPT = (
    "chat, owner, agent, created_at, title, labels, parent, pinned, archived, is_foreign, reader_level, holder, "
    "ready_at, due_at, epoch, status, interrupting, queued, queue_version, version, history_version, updated_at, "
    "control, digest"
)
_KEPT_EVENT = (
    "version, recorded_at, tx, position, schema_number, command_index, chat, type, actor_kind, actor_id, source, dest, "
    "command, facts, content, digest, fingerprint"
)
_PAGE = 1000


def upgrade() -> None:
    """Make the tables of headers and of events anew, and note which chats use which blobs."""
    _chats()
    _events()
    _segments()
    op.create_table(
        "blob_uses",
        Column("chat", identifier(), nullable=False),
        Column("digest", identifier(), nullable=False),
        PrimaryKeyConstraint("chat", "digest"),
    )
    op.create_index("ix_blob_uses_digest", "blob_uses", ["digest"])
    _note_uses(op.get_bind())
    op.create_table(
        "schema_levels",
        Column("oldest", Text, nullable=False),
        Column("write_level", Integer, nullable=False),
        PrimaryKeyConstraint("oldest"),
    )
    op.execute("INSERT INTO schema_levels (oldest, write_level) VALUES ('0002', 1)")
    op.add_column("workers", Column("note", LargeBinary))
    op.create_table(
        "refusals",
        Column("chat", identifier(), nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("data", LargeBinary, nullable=False),
        PrimaryKeyConstraint("chat"),
    )


def _chats() -> None:
    # Copied and not renamed: names of indexes and constraints would stay taken.
    op.execute("CREATE TABLE chats_0001 AS SELECT * FROM chats")
    op.drop_table("chats")
    op.create_table(
        "chats",
        Column("chat", identifier(), nullable=False),
        Column("owner", identifier(), nullable=False),
        Column("agent", identifier(), nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("title", Text),
        Column("labels", Text, nullable=False),
        Column("parent", identifier()),
        Column("pinned", Boolean, nullable=False),
        Column("archived", Boolean, nullable=False),
        Column("is_foreign", Boolean, nullable=False),
        Column("reader_level", Integer, nullable=False),
        Column("holder", identifier()),
        Column("listed_at", BigInteger, nullable=False),
        Column("ready_at", BigInteger),
        Column("due_at", BigInteger),
        Column("epoch", BigInteger, nullable=False),
        Column("status", identifier(), nullable=False),
        Column("interrupting", Boolean, nullable=False),
        Column("queued", Integer, nullable=False),
        Column("queue_version", BigInteger, nullable=False),
        Column("attempt", BigInteger),
        Column("version", BigInteger, nullable=False),
        Column("history_version", BigInteger, nullable=False),
        Column("updated_at", BigInteger, nullable=False),
        Column("control", LargeBinary, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        PrimaryKeyConstraint("chat"),
        postgresql_with={"fillfactor": 60},
    )
    op.execute(f"INSERT INTO chats ({_KEPT}, listed_at) SELECT {_KEPT}, updated_at FROM chats_0001")
    op.drop_table("chats_0001")
    _note_attempts(op.get_bind())
    op.create_index("ix_chats_listed", "chats", ["listed_at", text("chat DESC")])
    op.create_index("ix_chats_owner", "chats", ["owner", "listed_at", text("chat DESC")])
    ready = "ready_at IS NOT NULL"
    _partial_index(
        "ix_chats_ready", "chats", ["status", "ready_at"], ready, postgres=f"{ready} AND status <> 'running'"
    )
    by_owner = ["status", "owner", "ready_at"]
    _partial_index("ix_chats_ready_owner", "chats", by_owner, ready, postgres=f"{ready} AND status = 'pending'")
    _partial_index("ix_chats_holder", "chats", ["holder"], "holder IS NOT NULL AND ready_at IS NOT NULL")
    _partial_index("ix_chats_parent", "chats", ["parent"], "parent IS NOT NULL")


def _events() -> None:
    connection = op.get_bind()
    # Copied, as above. What the sequence gave is never given again, also where no row tells of it any more.
    last = None
    if connection.dialect.name == "postgresql":
        last = connection.execute(text("SELECT last_value, is_called FROM chat_events_position_seq")).one()
    op.execute("CREATE TABLE events_0001 AS SELECT * FROM chat_events")
    op.drop_table("chat_events")
    op.create_table(
        "chat_events",
        Column("version", BigInteger, nullable=False),
        Column("recorded_at", BigInteger, nullable=False),
        Column("tx", transaction(), nullable=False),
        Column("position", BigInteger, Identity(), nullable=False),
        Column("schema_number", Integer, nullable=False),
        Column("command_index", Integer, nullable=False),
        Column("chat", identifier(), nullable=False),
        Column("type", Text, nullable=False),
        Column("actor_kind", Text, nullable=False),
        Column("actor_id", Text),
        Column("source", Text, nullable=False),
        Column("dest", Text, nullable=False),
        Column("command", identifier(), nullable=False),
        Column("facts", LargeBinary, nullable=False),
        Column("content", LargeBinary, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("fingerprint", LargeBinary),
        PrimaryKeyConstraint("chat", "version"),
    )
    op.execute(f"INSERT INTO chat_events ({_KEPT_EVENT}) SELECT {_KEPT_EVENT} FROM events_0001 ORDER BY tx, position")
    op.drop_table("events_0001")
    if last is not None:
        connection.execute(
            text("SELECT setval('chat_events_position_seq', :value, :called)"), {"value": last[0], "called": last[1]}
        )
    _partial_index("ix_chat_events_command", "chat_events", ["chat", "command"], "command_index = 0", unique=True)
    _partial_index("ix_chat_events_feed", "chat_events", ["tx", "position"], "command_index = 0", unique=True)


def _segments() -> None:
    # Nothing was ever written to the table that stood here.
    op.drop_table("segments")
    op.create_table(
        "segments",
        Column("chat", identifier(), nullable=False),
        Column("first_version", BigInteger, nullable=False),
        Column("last_version", BigInteger, nullable=False),
        Column("start", BigInteger, nullable=False),
        Column("count", BigInteger, nullable=False),
        Column("schema_number", Integer, nullable=False),
        Column("digest", LargeBinary, nullable=False),
        Column("data", LargeBinary, nullable=False),
        PrimaryKeyConstraint("chat", "first_version", "last_version"),
    )


def _note_attempts(connection: Connection) -> None:
    """Note the attempt of each chat that runs: until now control alone knew it."""
    running = connection.execute(text("SELECT chat, control FROM chats WHERE status = 'running'"))
    for chat, control in running.all():
        attempt = msgspec.json.decode(bytes(control)).get("running", {}).get("attempt")
        connection.execute(
            text("UPDATE chats SET attempt = :attempt WHERE chat = :chat"), {"attempt": attempt, "chat": chat}
        )


def _note_uses(connection: Connection) -> None:
    """Note for each blob the chats whose events refer to it."""
    if connection.execute(text("SELECT digest FROM blobs LIMIT 1")).first() is None:
        return
    uses = sa.table("blob_uses", sa.column("chat"), sa.column("digest"))
    for chat in _chats_there(connection):
        contents = connection.execute(text("SELECT content FROM chat_events WHERE chat = :chat"), {"chat": chat})
        digests = {digest for (content,) in contents for digest in content_blobs(bytes(content))}
        if digests:
            connection.execute(sa.insert(uses), [{"chat": chat, "digest": digest} for digest in sorted(digests)])


def _chats_there(connection: Connection) -> Iterator[str]:
    after = ""
    while True:
        page = connection.execute(
            text("SELECT chat FROM chats WHERE chat > :after ORDER BY chat LIMIT :page"),
            {"after": after, "page": _PAGE},
        ).all()
        yield from (row[0] for row in page)
        if len(page) < _PAGE:
            return
        after = page[-1][0]


def _partial_index(
    name: str, table: str, columns: list[str], where: str, *, postgres: str | None = None, unique: bool = False
) -> None:
    op.create_index(
        name, table, columns, unique=unique, sqlite_where=text(where), postgresql_where=text(postgres or where)
    )
