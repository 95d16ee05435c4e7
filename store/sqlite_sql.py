"""What the SQLite back end says to SQLite: statements, and functions that run them on one connection.

Everything here is synchronous and runs on one of the store's threads. Threads, opening and hints are in
``store.sqlite``.
Lists travel as JSON text, since SQLite has no arrays and a bound on the number of parameters.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from events.envelope import StoredEvent
from store.contract import (
    Append,
    Appended,
    AppendResult,
    ChatQuery,
    CommandRecord,
    Conflict,
    DueChat,
    DuplicateCommand,
    Header,
    Heartbeat,
    Hint,
    LoadedHeader,
    NewEvent,
)
from store.errors import MalformedRow, OutcomeUnknown
from store.rows import (
    EVENT_COLUMNS,
    HEADER_COLUMNS,
    WRITTEN_EVENT_COLUMNS,
    WRITTEN_HEADER_COLUMNS,
    event_of,
    event_row,
    header_of,
    header_row,
    labels_text,
)
from store.rules import new_commands

_HEADER: Final = ", ".join(f"c.{column}" for column in HEADER_COLUMNS)
_EVENT: Final = ", ".join(EVENT_COLUMNS)

LOAD: Final = f"SELECT {_HEADER}, w.expires_at FROM chats c LEFT JOIN workers w ON w.worker = c.holder WHERE c.chat = ?"
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
ERASE: Final = "UPDATE chat_events SET content = ? WHERE chat = ? AND version = ?"
FIND_START: Final = "SELECT version, fingerprint FROM chat_events WHERE chat = ? AND command = ? AND command_index = 0"
FIND_END: Final = (
    "SELECT version FROM chat_events WHERE chat = ? AND version > ? AND command <> ? ORDER BY version LIMIT 1"
)
LAST_VERSION: Final = "SELECT version FROM chats WHERE chat = ?"
LAST_POSITION: Final = (
    "SELECT max(coalesce((SELECT position FROM chat_events ORDER BY tx DESC, position DESC LIMIT 1), 0), "
    "coalesce((SELECT max(position) FROM tombstones), 0))"
)
RENEW: Final = "UPDATE workers SET expires_at = ? WHERE worker = ? AND expires_at > ?"
START: Final = "INSERT INTO workers (worker, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING"
DROP_OLD_LEASES: Final = "DELETE FROM workers WHERE expires_at < ?"
EXPIRE: Final = "UPDATE workers SET expires_at = min(expires_at, ?) WHERE worker = ?"
CHANGED: Final = (
    "SELECT c.chat, c.version, c.status = 'pending' AND NOT c.is_foreign AND coalesce(c.due_at <= ?, 1), max(e.tx) "
    "FROM chat_events e JOIN chats c ON c.chat = e.chat WHERE e.tx > ? GROUP BY c.chat ORDER BY max(e.tx)"
)

_WANTED: Final = """ready_at IS NOT NULL AND reader_level <= :level
AND agent IN (SELECT value FROM json_each(:agents)) AND chat NOT IN (SELECT value FROM json_each(:exclude))"""
FIND_DUE: Final = f"""
WITH RECURSIVE holders (holder) AS (
  SELECT min(holder) FROM chats WHERE holder IS NOT NULL AND ready_at IS NOT NULL
  UNION ALL
  SELECT (SELECT min(c.holder) FROM chats c WHERE c.holder > h.holder AND c.ready_at IS NOT NULL)
  FROM holders h WHERE h.holder IS NOT NULL
), dead AS (
  SELECT holder FROM holders h WHERE holder IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker = h.holder AND w.expires_at > :now)
)
SELECT chat, kind FROM (
  SELECT * FROM (
    SELECT chat, CASE WHEN interrupting THEN 'interruption' ELSE 'takeover' END AS kind,
    NOT interrupting AS later, ready_at FROM chats
    WHERE holder IN (SELECT holder FROM dead) AND status = 'running' AND {_WANTED}
    ORDER BY later, ready_at, chat LIMIT :limit
  ) UNION ALL SELECT * FROM (
    SELECT chat, 'pending', 1, ready_at FROM chats
    WHERE status = 'pending' AND (due_at IS NULL OR ready_at <= :now) AND {_WANTED}
    ORDER BY ready_at, chat LIMIT :limit
  ) UNION ALL SELECT * FROM (
    SELECT chat, 'expired', 1, ready_at FROM chats WHERE status = 'requires_action' AND ready_at <= :now AND {_WANTED}
    ORDER BY ready_at, chat LIMIT :limit
  )
) ORDER BY later, ready_at, chat LIMIT :limit
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


def load_header(connection: sqlite3.Connection, chat: str, now: int) -> LoadedHeader | None:
    """Read a header and judge its holder's lease at ``now``."""
    with _readable(chat):
        row = connection.execute(LOAD, (chat,)).fetchone()
    if row is None:
        return None
    alive = isinstance(row[-1], int) and row[-1] > now
    return LoadedHeader(header=header_of(row), now=now, holder_alive=alive)


def read_events(
    connection: sqlite3.Connection, chat: str, after: int, upto: int | None, limit: int | None, *, content: bool
) -> list[StoredEvent]:
    """Read a range of events."""
    columns = _EVENT if content else _EVENT.removesuffix("content") + "x'' AS content"
    bounds = (after, 2**63 - 1 if upto is None else upto, -1 if limit is None else max(limit, 0))
    with _readable(chat, after + 1 if limit == 1 else None):
        rows = connection.execute(
            f"SELECT {columns} FROM chat_events WHERE chat = ? AND version > ? AND version <= ? "
            "ORDER BY version LIMIT ?",
            (chat, *bounds),
        ).fetchall()
    return [event_of(chat, row) for row in rows]


@contextmanager
def _readable(chat: str, version: int | None = None) -> Iterator[None]:
    """Name the chat whose row holds a text that is none.

    Raises:
        MalformedRow: The driver cannot read a text.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        if "decode to UTF-8" not in str(error):
            raise
        raise MalformedRow(chat, version, str(error)) from error


def append(connection: sqlite3.Connection, new: Append) -> AppendResult:
    """Write an append, or say why not."""
    with transaction(connection):
        starts = [connection.execute(FIND_START, (new.chat, name)).fetchone() for name in new_commands(new.events)]
        if any(starts):
            return DuplicateCommand(*min(start for start in starts if start is not None))
        version = _version(connection, new.chat, creates=new.expected_version == 0)
        if version != new.expected_version:
            return Conflict(version)
        if version == 0:
            connection.execute(INSERT_HEADER, header_row(new.header))
        else:
            connection.execute(UPDATE_HEADER, (*header_row(new.header), new.chat))
        _insert(connection, new.chat, new.events, new.blobs)
        connection.executemany(ERASE, [(content, new.chat, version) for version, content in new.erased.items()])
    return Appended()


def import_chat(
    connection: sqlite3.Connection, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]
) -> bool:
    """Write a whole log, unless the chat exists or existed."""
    with transaction(connection):
        if _version(connection, header.chat, creates=True):
            return False
        connection.execute(INSERT_HEADER, header_row(header))
        _insert(connection, header.chat, events, blobs)
    return True


def _version(connection: sqlite3.Connection, chat: str, *, creates: bool) -> int:
    row = connection.execute(LAST_VERSION, (chat,)).fetchone()
    if row is None and creates:
        row = connection.execute("SELECT version FROM tombstones WHERE chat = ?", (chat,)).fetchone()
    return 0 if row is None else int(row[0])


def _insert(connection: sqlite3.Connection, chat: str, events: Iterable[NewEvent], blobs: Mapping[str, bytes]) -> None:
    first = int(connection.execute(LAST_POSITION).fetchone()[0]) + 1
    rows = [(*event_row(event), chat, first, position) for position, event in enumerate(events, first)]
    connection.executemany(INSERT_EVENT, rows)
    if blobs:
        connection.executemany(INSERT_BLOB, blobs.items())


def find_command(connection: sqlite3.Connection, chat: str, command: str) -> CommandRecord | None:
    """Find the first and last version of a command."""
    start = connection.execute(FIND_START, (chat, command)).fetchone()
    if start is None:
        return None
    first, fingerprint = start
    next_command = connection.execute(FIND_END, (chat, first, command)).fetchone()
    if next_command is not None:
        return CommandRecord(first, next_command[0] - 1, fingerprint)
    last = connection.execute("SELECT max(version) FROM chat_events WHERE chat = ?", (chat,)).fetchone()[0]
    return CommandRecord(first, last, fingerprint)


def list_chats(connection: sqlite3.Connection, query: ChatQuery) -> list[Header]:
    """Read the headers that match."""
    conditions, values = ["1"], list[Any]()
    for column, value in (("owner", query.owner), ("agent", query.agent), ("archived", query.archived)):
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
    rows = connection.execute(
        f"SELECT {_HEADER} FROM chats c WHERE {' AND '.join(conditions)} ORDER BY listed_at DESC, chat LIMIT ?",
        (*values, max(query.limit, 0)),
    )
    return [header_of(row) for row in rows]


def list_ids(connection: sqlite3.Connection, after: str | None, limit: int) -> list[Any]:
    """Read ids in their order."""
    rows = connection.execute("SELECT chat FROM chats WHERE chat > ? ORDER BY chat LIMIT ?", (after or "", limit))
    return [row[0] for row in rows]


def get_blobs(connection: sqlite3.Connection, digests: Sequence[str]) -> dict[str, bytes]:
    """Read blobs by digest."""
    statement = "SELECT digest, CAST(data AS BLOB) FROM blobs WHERE digest IN (SELECT value FROM json_each(?))"
    return dict(connection.execute(statement, (json.dumps(list(digests)),)))


def delete(connection: sqlite3.Connection, chat: str, expected_version: int, now: int) -> bool:
    """Delete a chat's rows and leave a tombstone."""
    with transaction(connection):
        row = connection.execute("SELECT digest FROM chats WHERE chat = ? AND version = ?", (chat, expected_version))
        if (header := row.fetchone()) is None:
            return False
        position = connection.execute(LAST_POSITION).fetchone()[0]
        for table in ("chats", "chat_events", "segments", "chat_partials"):
            connection.execute(f"DELETE FROM {table} WHERE chat = ?", (chat,))
        connection.execute(
            "INSERT INTO tombstones (chat, version, digest, deleted_at, position) VALUES (?, ?, ?, ?, ?)",
            (chat, expected_version, header[0], now, position),
        )
    return True


def tombstone(connection: sqlite3.Connection, chat: str) -> bytes | None:
    """Read the last digest of a deleted chat."""
    row = connection.execute("SELECT digest FROM tombstones WHERE chat = ?", (chat,)).fetchone()
    return None if row is None else bytes(row[0])


def heartbeat(
    connection: sqlite3.Connection, worker: str, lease_us: int, now: int, *, start: bool
) -> tuple[Heartbeat, int]:
    """Renew a lease; also return when the lease that was renewed would have expired."""
    with transaction(connection):
        row = connection.execute("SELECT expires_at FROM workers WHERE worker = ?", (worker,)).fetchone()
        renewed = connection.execute(RENEW, (now + lease_us, worker, now)).rowcount == 1
        if start:
            renewed |= connection.execute(START, (worker, now + lease_us)).rowcount == 1
            connection.execute(DROP_OLD_LEASES, (now - _WEEK,))
    return Heartbeat(now, renewed), now + lease_us if row is None else row[0]


def expire(connection: sqlite3.Connection, worker: str, now: int) -> None:
    """End a lease at ``now``, if it does not end before."""
    with transaction(connection):
        connection.execute(EXPIRE, (now, worker))


def held_by(connection: sqlite3.Connection, worker: str) -> list[Any]:
    """Read the chats that name a holder."""
    statement = "SELECT chat FROM chats WHERE holder = ? AND ready_at IS NOT NULL ORDER BY chat"
    return [row[0] for row in connection.execute(statement, (worker,))]


def find_due(
    connection: sqlite3.Connection, agents: Sequence[str], level: int, limit: int, now: int, exclude: Sequence[str]
) -> list[DueChat]:
    """Read the chats that want a worker."""
    values = {
        "agents": json.dumps(list(agents)),
        "exclude": json.dumps(list(exclude)),
        "level": level,
        "limit": max(limit, 0),
        "now": now,
    }
    return [DueChat(*row) for row in connection.execute(FIND_DUE, values)]


def write_level(connection: sqlite3.Connection) -> int:
    """Read the level at which chats are written."""
    return int(connection.execute("SELECT write_level FROM schema_levels").fetchone()[0])


def raise_write_level(connection: sqlite3.Connection, level: int) -> int:
    """Raise the level at which chats are written; return the one in force."""
    with transaction(connection):
        connection.execute("UPDATE schema_levels SET write_level = max(write_level, ?)", (level,))
        return write_level(connection)


def data_version(connection: sqlite3.Connection) -> int:
    """Read the number that changes when another connection commits."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def last_position(connection: sqlite3.Connection) -> int:
    """Read the last position of the feed."""
    return int(connection.execute(LAST_POSITION).fetchone()[0])


def changed_since(connection: sqlite3.Connection, tx: int, now: int) -> tuple[list[Hint], int]:
    """Return hints for the chats that transactions after ``tx`` changed, and the last such transaction."""
    rows = connection.execute(CHANGED, (now, tx)).fetchall()
    return [Hint(row[0], row[1], bool(row[2])) for row in rows], max((row[3] for row in rows), default=tx)
