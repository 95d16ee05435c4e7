"""What the SQLite back end writes: statements, and functions that run them within a transaction.

Everything here is synchronous and runs on the store's writing thread. How appends share a transaction is in
``store.sqlite_batch``; reading is in ``store.sqlite_sql``.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from events.ids import ChatId
from store.columns import BYTES, HEADERS, NUMBER, check_row
from store.contract import Header, Heartbeat, PartialChunk, Segment
from store.errors import OutcomeUnknown
from store.notes import RefusalNote, WorkerNote
from store.rows import WRITTEN_EVENT_COLUMNS, WRITTEN_HEADER_COLUMNS, header_row, note_bytes
from store.rules import ERASES
from store.sqlite_feed import last_position
from store.sqlite_sql import LIVES, USES, peers, readable, write_level

INSERT_HEADER: Final = (
    f"INSERT INTO chats ({', '.join(WRITTEN_HEADER_COLUMNS)}) VALUES ({', '.join('?' * len(WRITTEN_HEADER_COLUMNS))})"
)
UPDATE_HEADER: Final = (
    f"UPDATE chats SET {', '.join(f'{column} = ?' for column in WRITTEN_HEADER_COLUMNS)} WHERE chat = ?"
)
INSERT_EVENT: Final = (
    f"INSERT INTO chat_events ({', '.join(WRITTEN_EVENT_COLUMNS)}, chat, tx, position) "
    f"VALUES ({', '.join('?' * (len(WRITTEN_EVENT_COLUMNS) + 3))})"
)
INSERT_BLOB: Final = "INSERT INTO blobs (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING"
INSERT_USE: Final = "INSERT INTO blob_uses (chat, digest) VALUES (?, ?) ON CONFLICT DO NOTHING"
USE_KEPT: Final = "INSERT INTO blob_uses (chat, digest) SELECT ?, digest FROM blobs WHERE digest = ?"
DROP_USE: Final = "DELETE FROM blob_uses WHERE chat = ? AND digest = ?"
DROP_UNUSED: Final = "DELETE FROM blobs WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE digest = ?)"
ERASE: Final = "UPDATE chat_events SET content = ? WHERE chat = ? AND version = ?"
VERSION: Final = "SELECT version FROM chats WHERE chat = ?"
BURIED_VERSION: Final = "SELECT version FROM tombstones WHERE chat = ?"
LAST_VERSION: Final = "SELECT max(version) FROM chat_events WHERE chat = ?"
RENEW: Final = f"UPDATE workers SET expires_at = :until WHERE worker = :worker AND {LIVES}"
START: Final = "INSERT INTO workers (worker, expires_at, note) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
DROP_OLD_LEASES: Final = "DELETE FROM workers WHERE expires_at < ?"
EXPIRE: Final = "UPDATE workers SET expires_at = min(expires_at, ?) WHERE worker = ?"
INSERT_PARTIAL: Final = """
INSERT INTO chat_partials (chat, history_version, attempt, n, data)
SELECT chat, history_version, attempt, ?, ? FROM chats
WHERE chat = ? AND epoch = ? AND history_version = ? AND attempt = ? ON CONFLICT DO NOTHING
"""
IS_CURRENT: Final = "SELECT 1 FROM chats WHERE chat = ? AND epoch = ? AND history_version = ? AND attempt = ?"
DROP_PARTIALS: Final = "DELETE FROM chat_partials WHERE chat = ?"
DROP_SEGMENTS: Final = "DELETE FROM segments WHERE chat = ?"
DROP_SEGMENT: Final = "DELETE FROM segments WHERE chat = ? AND first_version = ? AND last_version = ?"
IS_ERASED: Final = "SELECT 1 FROM chat_events WHERE chat = ? AND version > ? AND type = ? LIMIT 1"
INSERT_SEGMENT: Final = """
INSERT INTO segments (chat, first_version, last_version, start, count, schema_number, digest, data)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
BURY: Final = "INSERT INTO tombstones (chat, version, digest, deleted_at, position) VALUES (?, ?, ?, ?, ?)"
NOTE_REFUSAL: Final = """
INSERT INTO refusals (chat, at, data) SELECT chat, ?, ? FROM chats WHERE chat = ?
ON CONFLICT (chat) DO UPDATE SET at = excluded.at, data = excluded.data WHERE refusals.at <= excluded.at
"""

_WEEK: Final = 7 * 24 * 3600 * 1_000_000


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block as one writing transaction.

    Raises:
        OutcomeUnknown: The commit itself failed otherwise than for a lock or a full disk.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        connection.rollback()
        if error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL}:
            raise
        raise OutcomeUnknown(f"the commit failed: {error}") from error


def release(connection: sqlite3.Connection, chat: str, digests: Iterable[str]) -> None:
    """Note that a chat uses blobs no more, and delete those that nobody uses."""
    for digest in digests:
        connection.execute(DROP_USE, (chat, digest))
        connection.execute(DROP_UNUSED, (digest, digest))


def version_of(connection: sqlite3.Connection, chat: str) -> int:
    """Read the version of a chat, 0 without one."""
    return _version(connection.execute(VERSION, (chat,)).fetchone(), HEADERS, chat)


def buried_version_of(connection: sqlite3.Connection, chat: str) -> int:
    """Read the version that a deleted chat had, 0 without one."""
    return _version(connection.execute(BURIED_VERSION, (chat,)).fetchone(), "tombstones", chat)


def _version(row: Sequence[Any] | None, table: str, chat: str) -> int:
    if row is None:
        return 0
    check_row(table, ("version",), (NUMBER,), row, chat=chat)
    return int(row[0])


def delete(connection: sqlite3.Connection, chat: str, expected_version: int, now: int) -> bool:
    """Delete a chat's rows and leave a tombstone."""
    with readable(HEADERS, chat):
        row = connection.execute("SELECT digest FROM chats WHERE chat = ? AND version = ?", (chat, expected_version))
        header = row.fetchone()
    if header is None:
        return False
    check_row(HEADERS, ("digest",), (BYTES,), header, chat=chat)
    position = last_position(connection) + 1
    release(connection, chat, [digest for (digest,) in connection.execute(USES, (chat,)).fetchall()])
    for table in ("chats", "chat_events", "segments", "chat_partials", "refusals"):
        connection.execute(f"DELETE FROM {table} WHERE chat = ?", (chat,))
    connection.execute(BURY, (chat, expected_version, header[0], now, position))
    return True


def heartbeat(
    connection: sqlite3.Connection, worker: str, lease_us: int, now: int, *, start: bool, note: WorkerNote | None
) -> tuple[Heartbeat, int]:
    """Renew a lease; also return when the lease that was renewed would have expired."""
    row = connection.execute("SELECT CAST(expires_at AS INTEGER) FROM workers WHERE worker = ?", (worker,)).fetchone()
    renewed = connection.execute(RENEW, {"until": now + lease_us, "worker": worker, "now": now}).rowcount == 1
    if start:
        renewed |= connection.execute(START, (worker, now + lease_us, note_bytes(note))).rowcount == 1
        connection.execute(DROP_OLD_LEASES, (now - _WEEK,))
    alive = peers(connection, now)
    return Heartbeat(now, renewed, alive), now + lease_us if row is None else row[0]


def expire(connection: sqlite3.Connection, worker: str, now: int) -> None:
    """End a lease at ``now``, if it does not end before."""
    connection.execute(EXPIRE, (now, worker))


def note_refusals(connection: sqlite3.Connection, notes: Iterable[RefusalNote]) -> None:
    """Keep the newest refusal of each chat that is there."""
    connection.executemany(NOTE_REFUSAL, [(note.at, note_bytes(note), note.chat) for note in notes])


def raise_write_level(connection: sqlite3.Connection, level: int) -> int:
    """Raise the level at which chats are written; return the one in force."""
    connection.execute("UPDATE schema_levels SET write_level = max(write_level, ?)", (level,))
    return write_level(connection)


def write_partials(connection: sqlite3.Connection, chunks: Iterable[PartialChunk]) -> frozenset[ChatId]:
    """Keep the pieces of answers whose attempt is under way; return the chats of these."""
    kept: set[ChatId] = set()
    for each in chunks:
        place = (each.chat, each.epoch, each.history_version, each.attempt)
        if connection.execute(IS_CURRENT, place).fetchone() is not None:
            connection.execute(INSERT_PARTIAL, (each.n, each.data, *place))
            kept.add(each.chat)
    return frozenset(kept)


def write_segment(connection: sqlite3.Connection, segment: Segment, replaces: Iterable[Segment]) -> bool:
    """Write a segment in place of others, unless the chat is gone or content was erased since."""
    chat, last = segment.chat, segment.last_version
    if version_of(connection, chat) < last:
        return False
    if connection.execute(IS_ERASED, (chat, last, ERASES)).fetchone() is not None:
        return False
    connection.executemany(DROP_SEGMENT, [(chat, old.first_version, old.last_version) for old in replaces])
    shape = (segment.start, segment.count, segment.schema, segment.digest, segment.data)
    connection.execute(INSERT_SEGMENT, (chat, segment.first_version, last, *shape))
    return True


def drop_segments(connection: sqlite3.Connection, chat: str) -> None:
    """Delete all segments of a chat."""
    connection.execute(DROP_SEGMENTS, (chat,))


def rebuild_header(connection: sqlite3.Connection, header: Header) -> bool:
    """Write a header whatever its row holds, if it fits the end of the log."""
    if not _ends_at(connection, header.chat, header.version):
        return False
    if connection.execute(UPDATE_HEADER, (*header_row(header), header.chat)).rowcount == 0:
        connection.execute(INSERT_HEADER, header_row(header))
    return True


def rebuild_uses(connection: sqlite3.Connection, chat: str, version: int, digests: Iterable[str]) -> bool:
    """Have a chat use what it is to use, if its log ends at ``version``."""
    if not _ends_at(connection, chat, version):
        return False
    connection.execute("DELETE FROM blob_uses WHERE chat = ?", (chat,))
    connection.executemany(USE_KEPT, [(chat, digest) for digest in digests])
    return True


def _ends_at(connection: sqlite3.Connection, chat: str, version: int) -> bool:
    (last,) = connection.execute(LAST_VERSION, (chat,)).fetchone()
    return bool(last == version)


def drop_unused(connection: sqlite3.Connection, digests: Iterable[str]) -> int:
    """Delete those of ``digests`` that no chat uses; return how many."""
    return connection.executemany(DROP_UNUSED, [(digest, digest) for digest in digests]).rowcount
