"""What the PostgreSQL back end says to PostgreSQL: statements, and the parameters of an append.

Owns the texts of the log and its header; what stands beside the log is in ``store.postgres_keep``, due chats in
``store.postgres_due``, the feed in ``store.postgres_feed``, connections and errors in ``store.postgres_pool``.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from events.envelope import StoredEvent
from store.contract import Append, Header, NewEvent
from store.postgres_texts import NOW, command_found, read_as_is, type_of, value_of
from store.query import ChatQuery
from store.rows import (
    EVENT_COLUMNS,
    HEADER_COLUMNS,
    WRITTEN_EVENT_COLUMNS,
    WRITTEN_HEADER_COLUMNS,
    content_value,
    event_of,
    event_row,
    header_row,
    labels_text,
    unescaped,
)
from store.rules import new_commands

_HEADER: Final = ", ".join(f"c.{column}" for column in HEADER_COLUMNS)
_WRITTEN_HEADER: Final = ", ".join(WRITTEN_HEADER_COLUMNS)
_EVENT: Final = ", ".join(map(read_as_is, EVENT_COLUMNS))
_WRITTEN_EVENT: Final = ", ".join(WRITTEN_EVENT_COLUMNS)
_HEADER_VALUES: Final = ", ".join(value_of(column) for column in WRITTEN_HEADER_COLUMNS)
_EVENT_ARRAYS: Final = ", ".join(f"%(events_{column})b::{type_of(column)}[]" for column in WRITTEN_EVENT_COLUMNS)
_COMMAND, _ACTOR = EVENT_COLUMNS.index("command"), EVENT_COLUMNS.index("actor_id")

SCHEMA: Final = """
SELECT current_schema(), to_regclass('chatfold_version') IS NOT NULL, to_regclass('schema_levels') IS NOT NULL,
EXISTS (
  SELECT FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')
)
"""
LEVELS: Final = "SELECT oldest, write_level FROM schema_levels"
RAISE_LEVEL: Final = (
    "UPDATE schema_levels SET write_level = greatest(write_level, %(level)s::int) RETURNING oldest, write_level"
)
LOAD: Final = (
    f"SELECT {_HEADER}, {NOW}, coalesce(w.expires_at > {NOW}, false), c.ready_at "
    "FROM chats c LEFT JOIN workers w ON w.worker = c.holder WHERE c.chat = %(chat)s"
)
FIND_COMMAND: Final = """
SELECT s.version, nullif(s.fingerprint, ''),
  coalesce(
    (SELECT n.version - 1 FROM chat_events n WHERE n.chat = s.chat AND n.version > s.version
      AND n.command <> s.command ORDER BY n.version LIMIT 1),
    (SELECT n.version FROM chat_events n WHERE n.chat = s.chat ORDER BY n.version DESC LIMIT 1))
FROM chat_events s WHERE s.chat = %(chat)s AND s.command = %(command)s AND s.command_index = 0
"""
LIST_IDS: Final = """
WITH RECURSIVE ids (chat, n) AS (
  SELECT %(after)s::text COLLATE "C", 0::bigint
  UNION ALL SELECT (
    SELECT least(
      (SELECT chat FROM chats c WHERE c.chat > i.chat ORDER BY chat LIMIT 1),
      (SELECT chat FROM chat_events e WHERE e.chat > i.chat ORDER BY chat LIMIT 1)
    )
  ), n + 1 FROM ids i WHERE i.chat IS NOT NULL AND n < %(limit)s
)
SELECT chat FROM ids WHERE n > 0 AND chat IS NOT NULL
"""
"""Chats by their headers and, should one have been lost, by their events."""
GET_BLOBS: Final = "SELECT digest, data FROM blobs WHERE digest = ANY(%(digests)b::text[])"
TOMBSTONE: Final = "SELECT digest FROM tombstones WHERE chat = %(chat)s"
HELD_BY: Final = "SELECT chat FROM chats WHERE holder = %(worker)s AND ready_at IS NOT NULL ORDER BY chat"
DELETE: Final = f"""
WITH gone AS (
  DELETE FROM chats WHERE chat = %(chat)s AND version = %(version)s RETURNING chat, version, digest
),
events AS (DELETE FROM chat_events e USING gone WHERE e.chat = gone.chat),
pieces AS (DELETE FROM segments s USING gone WHERE s.chat = gone.chat),
partials AS (DELETE FROM chat_partials p USING gone WHERE p.chat = gone.chat),
refused AS (DELETE FROM refusals r USING gone WHERE r.chat = gone.chat),
uses AS (DELETE FROM blob_uses u USING gone WHERE u.chat = gone.chat RETURNING u.digest),
stone AS (
  INSERT INTO tombstones (chat, version, digest, deleted_at, position) SELECT chat, version, digest, {NOW}, 0 FROM gone
)
SELECT count(*), ARRAY (SELECT digest FROM uses) FROM gone
"""

_ONE_FOUND: Final = f"found AS ({command_found('%(chat)s', '%(command)s')})"
_ANY_FOUND: Final = f"""found AS (
  SELECT e.* FROM unnest(%(commands)b::text[]) AS n (command)
  CROSS JOIN LATERAL ({command_found("%(chat)s", "n.command")}) e
)"""
_DUPLICATE: Final = "duplicate AS (SELECT version, fingerprint FROM found ORDER BY version LIMIT 1)"
_UPDATED: Final = f"""changed AS (
  UPDATE chats SET ({_WRITTEN_HEADER}) = ROW ({_HEADER_VALUES})
  WHERE chat = %(chat)s AND version = %(expected)s AND NOT EXISTS (SELECT FROM duplicate) RETURNING 1 AS one
)"""
# Whoever waited for a lock would not see, and so not delete, what was written under it.
_UPDATED_AT_ONCE: Final = _UPDATED.replace(
    "WHERE chat = %(chat)s AND version = %(expected)s",
    "WHERE chat = (SELECT chat FROM chats WHERE chat = %(chat)s AND version = %(expected)s"
    " FOR NO KEY UPDATE SKIP LOCKED)",
)
# A deletion under way is seen whole or not at all: before it the chat stands in the way, after it the tombstone.
_CREATED: Final = f"""changed AS (
  INSERT INTO chats ({_WRITTEN_HEADER}) SELECT {_HEADER_VALUES}
  WHERE NOT EXISTS (SELECT FROM chats WHERE chat = %(chat)s)
  AND NOT EXISTS (SELECT FROM tombstones WHERE chat = %(chat)s)
  ON CONFLICT DO NOTHING RETURNING 1 AS one
)"""
_INTO_EVENTS: Final = (
    f"INSERT INTO chat_events ({_WRITTEN_EVENT}, chat, tx) SELECT e.*, %(chat)s::text, pg_current_xact_id()"
)
_INSERT_EVENTS: Final = f"{_INTO_EVENTS} FROM unnest({_EVENT_ARRAYS}) AS e ({_WRITTEN_EVENT})"
_INSERT_BLOBS: Final = (
    "INSERT INTO blobs (digest, data) "
    "SELECT b.* FROM unnest(%(blob_digests)b::text[], %(blob_data)b::bytea[]) AS b (digest, data)"
)
_USED: Final = "SELECT %(chat)s::text, b.* FROM unnest(%(blob_digests)b::text[]) AS b (digest)"
_INSERT_USES: Final = f"INSERT INTO blob_uses (chat, digest) {_USED}"
MOST_SINGLY: Final = 4
"""Up to so many events go as single values, which cost less than arrays; each number is a statement of its own."""


def _inserted(count: int) -> str:
    if count > MOST_SINGLY:
        return f"inserted AS ({_INSERT_EVENTS}, changed ORDER BY e.version)"
    rows = (", ".join(value_of(column, f"event{n}_{column}") for column in WRITTEN_EVENT_COLUMNS) for n in range(count))
    values = ", ".join(f"({row})" for row in rows)
    return f"inserted AS ({_INTO_EVENTS} FROM (VALUES {values}) AS e ({_WRITTEN_EVENT}), changed ORDER BY e.version)"


# A blob that is there already is locked by writing it again: who is about to delete it waits, and finds it used.
_BLOBS: Final = f"""kept AS ({_INSERT_BLOBS}, changed ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest),
used AS ({_INSERT_USES}, changed ON CONFLICT DO NOTHING)"""
_ERASED: Final = """erased AS (
  UPDATE chat_events t SET content = e.content
  FROM unnest(%(erased_versions)b::bigint[], %(erased_contents)b::bytea[]) AS e (version, content), changed
  WHERE t.chat = %(chat)s AND t.version = e.version
), cut AS (DELETE FROM segments s USING changed WHERE s.chat = %(chat)s)"""
_ENDED: Final = "ended AS (DELETE FROM chat_partials p USING changed WHERE p.chat = %(chat)s)"
# Looked at only where nothing was written.
_SAY: Final = """SELECT w.rows, d.version, d.fingerprint,
  CASE WHEN w.rows = 0 THEN (SELECT version FROM chats WHERE chat = %(chat)s) END,
  CASE WHEN w.rows = 0 THEN (SELECT version FROM tombstones WHERE chat = %(chat)s) END
FROM (SELECT count(*) AS rows FROM changed) w LEFT JOIN duplicate d ON true"""
RECHECK: Final = f"""
WITH {_ANY_FOUND}, {_DUPLICATE}, changed AS (SELECT 1 WHERE false) {_SAY}
"""
"""Answers as an append that wrote nothing; for when the append's own snapshot was taken before what stopped it."""

_SINGLE_NAMES: Final = [[f"event{n}_{column}" for column in WRITTEN_EVENT_COLUMNS] for n in range(MOST_SINGLY)]

CREATE: Final = f"WITH {_CREATED} SELECT count(*) FROM changed"
INSERT_EVENTS: Final = f"{_INSERT_EVENTS} ORDER BY e.version"
INSERT_BLOBS: Final = (
    f"WITH used AS ({_INSERT_USES} ON CONFLICT DO NOTHING) "
    f"{_INSERT_BLOBS} ON CONFLICT (digest) DO UPDATE SET digest = excluded.digest"
)


@cache
def _append(count: int, *, one: bool, creates: bool, blobs: bool, erases: bool, ends: bool) -> str:
    parts = [_ONE_FOUND if one else _ANY_FOUND, _DUPLICATE, _CREATED if creates else _UPDATED, _inserted(count)]
    parts += [_BLOBS] if blobs else []
    parts += [_ERASED] if erases else []
    parts += [_ENDED] if ends else []
    return f"WITH {', '.join(parts)} {_SAY}"


def append_statement(append: Append) -> str:
    """Return the one statement that writes ``append`` or says why not."""
    return _append(
        min(len(append.events), MOST_SINGLY + 1),
        one=len(new_commands(append.events)) == 1,
        creates=append.expected_version == 0,
        blobs=bool(append.blobs),
        erases=bool(append.erased),
        ends=append.drop_partials,
    )


def plain_statement(count: int, *, ends: bool) -> str:
    """Return the statement that writes ``count`` events of one command to a chat that is there, with plain values.

    ``ends``: the chat's partials go; then it does not wait for a header that is locked, and writes nothing.
    """
    statement = _append(count, one=True, creates=False, blobs=False, erases=False, ends=ends)
    return statement.replace(_UPDATED, _UPDATED_AT_ONCE) if ends else statement


def append_values(append: Append) -> dict[str, Any]:
    """Return the parameters of :func:`append_statement`, which are those of ``RECHECK`` too."""
    values = header_values(append.header)
    if len(append.events) > MOST_SINGLY:
        values |= event_values(append.chat, append.events)
    else:
        for names, event in zip(_SINGLE_NAMES, append.events, strict=False):
            values.update(zip(names, event_row(event), strict=True))
    values["expected"] = append.expected_version
    values["commands"] = commands = list(new_commands(append.events))
    values["command"] = commands[0] if commands else None
    if append.blobs:
        values |= blob_values(append.blobs)
    if append.erased:
        values["erased_versions"] = list(append.erased)
        values["erased_contents"] = [content_value(content) for content in append.erased.values()]
    return values


def header_values(header: Header) -> dict[str, Any]:
    """Return the parameters of a written header."""
    return dict(zip(WRITTEN_HEADER_COLUMNS, header_row(header), strict=True))


def event_values(chat: str, events: Iterable[NewEvent]) -> dict[str, Any]:
    """Return the parameters of written events: one list for each column."""
    columns = zip(*(event_row(event) for event in events), strict=True)
    values = {f"events_{name}": list(column) for name, column in zip(WRITTEN_EVENT_COLUMNS, columns, strict=True)}
    return values | {"chat": chat}


def blob_values(blobs: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the parameters of written blobs, sorted, so that appends never wait for each other in a ring."""
    digests = sorted(blobs)
    return {"blob_digests": digests, "blob_data": [blobs[digest] for digest in digests]}


def read_events_statement(*, content: bool) -> str:
    """Return the statement that reads a range of events."""
    columns = _EVENT if content else _EVENT.removesuffix("content") + "''::bytea"
    return (
        f"SELECT {columns} FROM chat_events WHERE chat = %(chat)s AND version > %(after)s AND version <= %(upto)s "
        "ORDER BY version LIMIT %(limit)s"
    )


def read_event(chat: str, row: Sequence[Any]) -> StoredEvent:
    """Return the event of a row whose columns were read as they are: names that people give may hold escapes."""
    if "\x01" in row[_COMMAND] or "\x01" in (row[_ACTOR] or ""):
        row = [unescaped(value) if isinstance(value, str) else value for value in row]
    return event_of(chat, row)


def list_statement(query: ChatQuery) -> tuple[str, dict[str, Any]]:
    """Return the statement that lists chats, with its parameters."""
    conditions, values = ["true"], dict[str, Any](limit=max(query.limit, 0))
    plain = ("owner", "agent", "archived", "parent")
    for column, value in ((name, getattr(query, name)) for name in plain):
        if value is not None:
            conditions.append(f"{column} = %({column})s")
            values[column] = value
    if query.statuses is not None:
        conditions.append("status = ANY(%(statuses)b::text[])")
        values["statuses"] = list(query.statuses)
    if query.labels:
        conditions.append("labels::jsonb @> %(labels)s::jsonb")
        values["labels"] = labels_text(query.labels)
    if query.before is not None:
        conditions.append("listed_at <= %(before)s AND (listed_at < %(before)s OR chat > %(before_chat)s)")
        values["before"], values["before_chat"] = query.before
    where = " AND ".join(conditions)
    return f"SELECT {_HEADER} FROM chats c WHERE {where} ORDER BY listed_at DESC, chat LIMIT %(limit)s", values


def batches(events: Sequence[NewEvent], most_bytes: int = 4_000_000) -> Iterable[Sequence[NewEvent]]:
    """Cut events into runs of about ``most_bytes`` of payload each, for a whole log to be written in pieces."""
    batch, size = list[NewEvent](), 0
    for event in events:
        batch.append(event)
        size += 500 + len(event.stored.facts) + len(event.stored.content)
        if size >= most_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
