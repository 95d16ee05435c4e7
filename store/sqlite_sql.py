"""What the SQLite back end reads: statements, and functions that run them on one connection.

Everything here is synchronous and runs on one of the store's threads. What is due and what is in the feed have modules
of their own (``store.sqlite_due``, ``store.sqlite_feed``); writing is in ``store.sqlite_writes``.
Lists travel as JSON text, since SQLite has no arrays and a bound on the number of parameters.
"""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from events.envelope import StoredEvent
from store.columns import BYTES, EVENTS, HEADERS, MAYBE_BYTES, NUMBER, TEXT, check_row
from store.contract import CommandRecord, Header, LoadedHeader, PartialChunk, Segment
from store.errors import MalformedRow
from store.notes import LivingWorker, RefusalNote
from store.query import ChatQuery
from store.rows import (
    EVENT_COLUMNS,
    HEADER_COLUMNS,
    event_of,
    header_of,
    labels_text,
    partial_of,
    refusal_note,
    segment_of,
    worker_note,
)
from store.rules import is_misplaced
from store.schema import LEVELS, levels_of

_HEADER: Final = ", ".join(f"c.{column}" for column in HEADER_COLUMNS)
_EVENT: Final = ", ".join(EVENT_COLUMNS)

LOAD: Final = (
    f"SELECT {_HEADER}, c.ready_at, w.expires_at FROM chats c LEFT JOIN workers w ON w.worker = c.holder "
    "WHERE c.chat = ?"
)
FIND_START: Final = (
    "SELECT version, nullif(fingerprint, x'') FROM chat_events WHERE chat = ? AND command = ? AND command_index = 0"
)
STARTS: Final = ("version", "fingerprint")
STARTS_HOLD: Final = (NUMBER, MAYBE_BYTES)
"""What ``FIND_START`` reads, and what it holds."""

PARTIALS: Final = """
SELECT p.chat, c.epoch, p.history_version, p.attempt, p.n, p.data
FROM chat_partials p CROSS JOIN chats c ON c.chat = p.chat WHERE p.chat = ?
ORDER BY p.history_version, p.attempt, p.n
"""
SEGMENTS: Final = """
SELECT chat, first_version, last_version, start, count, schema_number, digest, data FROM segments WHERE chat = ?
ORDER BY last_version, first_version
"""
LIST_IDS: Final = """
WITH RECURSIVE ids (chat, n) AS (
  SELECT :after, 0
  UNION ALL SELECT (
    SELECT min(chat) FROM (
      SELECT min(chat) AS chat FROM chats WHERE chat > i.chat
      UNION ALL SELECT min(chat) FROM chat_events WHERE chat > i.chat
    )
  ), n + 1 FROM ids i WHERE i.chat IS NOT NULL AND n < :limit
)
SELECT chat FROM ids WHERE n > 0 AND chat IS NOT NULL
"""
"""Chats by their headers and, should one have been lost, by their events."""
UNUSED_BLOBS: Final = """
SELECT digest FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM blob_uses u WHERE u.digest = b.digest) LIMIT ?
"""
USES: Final = "SELECT digest FROM blob_uses WHERE chat = ?"
LIVES: Final = "typeof(worker) = 'text' AND typeof(expires_at) = 'integer' AND expires_at > :now"
"""Which leases live. One that ends at no time has ended: SQLite takes a text for later than every number."""

FIND_END: Final = (
    "SELECT version FROM chat_events WHERE chat = ? AND version > ? AND command <> ? ORDER BY version LIMIT 1"
)


def load_header(connection: sqlite3.Connection, chat: str, now: int) -> LoadedHeader | None:
    """Read a header and judge its holder's lease at ``now``."""
    with readable(HEADERS, chat):
        row = connection.execute(LOAD, (chat,)).fetchone()
    if row is None:
        return None
    alive = isinstance(row[-1], int) and row[-1] > now
    header = header_of(row)
    return LoadedHeader(header=header, now=now, holder_alive=alive, misplaced=is_misplaced(header, row[-2]))


def read_events(
    connection: sqlite3.Connection, chat: str, after: int, upto: int | None, limit: int | None, *, content: bool
) -> list[StoredEvent]:
    """Read a range of events."""
    columns = _EVENT if content else _EVENT.removesuffix("content") + "x'' AS content"
    bounds = (after, 2**63 - 1 if upto is None else upto, -1 if limit is None else max(limit, 0))
    with readable(EVENTS, chat, after + 1 if limit == 1 else None):
        rows = connection.execute(
            f"SELECT {columns} FROM chat_events WHERE chat = ? AND version > ? AND version <= ? "
            "ORDER BY version LIMIT ?",
            (chat, *bounds),
        ).fetchall()
    return [event_of(chat, row) for row in rows]


@contextmanager
def readable(table: str, chat: str | None = None, version: int | None = None) -> Iterator[None]:
    """Name the table, and the chat where it is known, whose row holds a text that is none.

    Raises:
        MalformedRow: The driver cannot read a text.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if not is_no_text(error):
            raise
        raise MalformedRow(chat, version, str(error), table=table) from error


def is_no_text(error: sqlite3.Error) -> bool:
    """Whether the driver says that what SQLite holds as a text is none."""
    return "decode to UTF-8" in str(error)


def find_command(connection: sqlite3.Connection, chat: str, command: str) -> CommandRecord | None:
    """Find the first and last version of a command."""
    with readable(EVENTS, chat):
        start = connection.execute(FIND_START, (chat, command)).fetchone()
    if start is None:
        return None
    check_row(EVENTS, STARTS, STARTS_HOLD, start, chat=chat, version=start[0])
    first, fingerprint = start
    found = connection.execute(FIND_END, (chat, first, command)).fetchone()
    behind = found is not None
    if found is None:
        found = connection.execute("SELECT max(version) FROM chat_events WHERE chat = ?", (chat,)).fetchone()
    check_row(EVENTS, ("version",), (NUMBER,), found, chat=chat)
    return CommandRecord(first, found[0] - behind, fingerprint)


def list_chats(connection: sqlite3.Connection, query: ChatQuery) -> list[Header]:
    """Read the headers that match."""
    conditions, values = ["1"], list[Any]()
    plain = ("owner", "agent", "archived", "parent")
    for column, value in ((name, getattr(query, name)) for name in plain):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if query.statuses is not None:
        conditions.append("status IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(query.statuses))
    if query.labels:
        conditions.append(
            "NOT EXISTS (SELECT 1 FROM json_each(?) q WHERE NOT EXISTS "
            "(SELECT 1 FROM json_each(c.labels) l WHERE l.key = q.key AND l.value = q.value))"
        )
        values.append(labels_text(query.labels))
    if query.before is not None:
        conditions.append("listed_at <= ? AND (listed_at < ? OR chat > ?)")
        values += (query.before[0], query.before[0], query.before[1])
    statement = f"SELECT {_HEADER} FROM chats c WHERE {' AND '.join(conditions)} ORDER BY listed_at DESC, chat LIMIT ?"
    with readable(HEADERS):
        rows = connection.execute(statement, (*values, max(query.limit, 0))).fetchall()
    return [header_of(row) for row in rows]


def list_ids(connection: sqlite3.Connection, after: str | None, limit: int) -> list[Any]:
    """Read ids in their order."""
    with readable(HEADERS):
        return [row[0] for row in connection.execute(LIST_IDS, {"after": after or "", "limit": limit})]


def get_blobs(connection: sqlite3.Connection, digests: Sequence[str]) -> dict[str, bytes]:
    """Read blobs by digest."""
    statement = "SELECT digest, CAST(data AS BLOB) FROM blobs WHERE digest IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(statement, (json.dumps(list(digests)),)))


def tombstone(connection: sqlite3.Connection, chat: str) -> bytes | None:
    """Read the last digest of a deleted chat."""
    with readable("tombstones", chat):
        row = connection.execute("SELECT digest FROM tombstones WHERE chat = ?", (chat,)).fetchone()
    if row is None:
        return None
    check_row("tombstones", ("digest",), (BYTES,), row, chat=chat)
    return bytes(row[0])


def held_by(connection: sqlite3.Connection, worker: str) -> list[Any]:
    """Read the chats that name a holder; one whose id is no text is nobody's to run."""
    statement = (
        "SELECT chat FROM chats WHERE holder = ? AND ready_at IS NOT NULL AND typeof(chat) = 'text' ORDER BY chat"
    )
    return [row[0] for row in connection.execute(statement, (worker,))]


def write_level(connection: sqlite3.Connection) -> int:
    """Read the level at which chats are written."""
    return levels(connection)[1]


def levels(connection: sqlite3.Connection) -> tuple[str, int]:
    """Read the oldest revision whose release can work with this schema, and the write level."""
    with readable(LEVELS):
        row = connection.execute("SELECT oldest, write_level FROM schema_levels").fetchone()
    return levels_of(row)


def list_workers(connection: sqlite3.Connection) -> list[LivingWorker]:
    """Read the leases that are kept."""
    with readable("workers"):
        rows = connection.execute(
            "SELECT worker, CAST(expires_at AS INTEGER), CAST(note AS BLOB) FROM workers ORDER BY worker"
        ).fetchall()
    for row in rows:
        check_row("workers", ("worker",), (TEXT,), row)
    return [LivingWorker(worker=row[0], expires_at=row[1], note=worker_note(row[2])) for row in rows]


def last_refusal(connection: sqlite3.Connection, chat: str) -> RefusalNote | None:
    """Read the last refusal that was noted."""
    row = connection.execute("SELECT CAST(data AS BLOB) FROM refusals WHERE chat = ?", (chat,)).fetchone()
    return None if row is None else refusal_note(row[0])


def data_version(connection: sqlite3.Connection) -> int:
    """Read the number that changes when another connection commits."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def peers(connection: sqlite3.Connection, now: int) -> tuple[Any, ...]:
    """Read who is alive at ``now``."""
    rows = connection.execute(f"SELECT worker FROM workers WHERE {LIVES} ORDER BY worker", {"now": now})
    return tuple(row[0] for row in rows)


def read_partials(connection: sqlite3.Connection, chat: str) -> list[PartialChunk]:
    """Read what is kept of answers under way."""
    with readable("chat_partials", chat):
        rows = connection.execute(PARTIALS, (chat,)).fetchall()
    return [partial_of(row) for row in rows]


def read_segments(connection: sqlite3.Connection, chat: str, *, data: bool) -> list[Segment]:
    """Read the segments of a chat by their last version."""
    # All at once: a row that cannot be read must not leave the statement open, and this connection in the past.
    with readable("segments", chat):
        rows = connection.execute(SEGMENTS if data else SEGMENTS.replace(", data", ", x''"), (chat,)).fetchall()
    return [segment_of(row) for row in rows]


def unused_blobs(connection: sqlite3.Connection, limit: int) -> list[str]:
    """Read digests of blobs that no chat uses."""
    with readable("blobs"):
        return [row[0] for row in connection.execute(UNUSED_BLOBS, (limit,))]


def read_uses(connection: sqlite3.Connection, chat: str) -> frozenset[str]:
    """Read digests of the blobs that a chat is said to use."""
    with readable("blob_uses", chat):
        rows = connection.execute(USES, (chat,)).fetchall()
    for row in rows:
        check_row("blob_uses", ("digest",), (TEXT,), row, chat=chat)
    return frozenset(row[0] for row in rows)
