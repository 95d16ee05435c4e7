"""The appends of one transaction in a SQLite file: each is judged by itself, and each table is written by few calls.

Owns the order of judging and writing. Every call into SQLite gives up the interpreter's lock and must win it back, so
rows are gathered and written together. A header's indexed columns are written only where they changed: SQLite makes an
index entry anew for every column that a statement names.
"""

import sqlite3
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

from msgspec.json import encode

from store.columns import EVENTS, HEADERS, NUMBER, check_row
from store.contract import Append, Appended, AppendResult, Conflict, DuplicateCommand
from store.rows import WRITTEN_HEADER_COLUMNS, content_value, event_row, header_row
from store.rules import new_commands
from store.sqlite_feed import last_position
from store.sqlite_sql import FIND_START, STARTS, STARTS_HOLD
from store.sqlite_writes import (
    DROP_PARTIALS,
    DROP_SEGMENTS,
    ERASE,
    INSERT_BLOB,
    INSERT_EVENT,
    INSERT_HEADER,
    INSERT_USE,
    UPDATE_HEADER,
    buried_version_of,
    release,
)

_INDEXED: Final = ("owner", "parent", "status", "holder", "listed_at", "ready_at")
_PLAIN: Final = tuple(column for column in WRITTEN_HEADER_COLUMNS if column not in {"chat", *_INDEXED})

_SEEN: Final = f"SELECT chat, version, {', '.join(_INDEXED)} FROM chats"
STANDS: Final = f"{_SEEN} WHERE chat = ?"
STAND_ALL: Final = f"{_SEEN} WHERE chat IN (SELECT value FROM json_each(?))"
UPDATE_PLAIN: Final = f"UPDATE chats SET {', '.join(f'{column} = ?' for column in _PLAIN)} WHERE chat = ?"

_indexed = itemgetter(*map(WRITTEN_HEADER_COLUMNS.index, _INDEXED))
_plain = itemgetter(*map(WRITTEN_HEADER_COLUMNS.index, (*_PLAIN, "chat")))

APPENDED: Final = Appended()


class Batch:
    """Appends that are judged one by one and written together. Nothing is written for one that is refused.

    Args:
        connection: Within a transaction.
        careful: Look for each command before it is written. Otherwise a command that is in the log already makes
            :meth:`flush` raise ``sqlite3.IntegrityError``.
    """

    def __init__(self, connection: sqlite3.Connection, *, careful: bool) -> None:
        self._connection = connection
        self._stands: dict[str, Sequence[Any]] = {}
        self._careful = careful
        self._position: int | None = None
        self._chats = set[str]()
        self._created = list[tuple[Any, ...]]()
        self._moved = list[tuple[Any, ...]]()
        self._stayed = list[tuple[Any, ...]]()
        self._events = list[tuple[Any, ...]]()
        self._ended = list[tuple[str]]()
        self._special = list[Append]()

    def look_at(self, chats: Sequence[str]) -> None:
        """Read by one call how the chats of the next appends stand, before which nothing else is written."""
        self._stands = {}
        if len(chats) > 1:
            rows = self._connection.execute(STAND_ALL, (encode(chats).decode(),)).fetchall()
            self._stands = {row[0]: row for row in rows}

    def add(self, append: Append) -> AppendResult:
        """Judge an append, and take it up if it may be written."""
        chat = append.chat
        if chat in self._chats:
            self.flush()
        if self._careful and (duplicate := self._duplicate(append)) is not None:
            return duplicate
        # Good for one append. What was not found among many is looked for by itself: a text with NUL does not come
        # through JSON there.
        stands = self._stands.pop(chat, None) or self._connection.execute(STANDS, (chat,)).fetchone()
        if stands is not None:
            version = stands[1]
        else:
            # Who creates is told the version of a deleted chat.
            version = 0 if append.expected_version else buried_version_of(self._connection, chat)
        if version != append.expected_version:
            check_row(HEADERS, ("version",), (NUMBER,), (version,), chat=chat)
            return (None if self._careful else self._duplicate(append)) or Conflict(version)
        self._chats.add(chat)
        self._take(append, stands)
        return APPENDED

    def _duplicate(self, append: Append) -> DuplicateCommand | None:
        execute = self._connection.execute
        starts = [execute(FIND_START, (append.chat, name)).fetchone() for name in new_commands(append.events)]
        known = [start for start in starts if start is not None]
        for start in known:
            check_row(EVENTS, STARTS, STARTS_HOLD, start, chat=append.chat, version=start[0])
        return DuplicateCommand(*min(known)) if known else None

    def _take(self, append: Append, stands: Sequence[Any] | None) -> None:
        row = header_row(append.header)
        if stands is None:
            self._created.append(row)
        elif _indexed(row) == stands[2:]:
            self._stayed.append(_plain(row))
        else:
            self._moved.append((*row, append.chat))
        if self._position is None:
            self._position = last_position(self._connection)
        position = first = self._position + 1
        for new in append.events:
            self._events.append((*event_row(new), append.chat, first, position))
            position += 1
        self._position = position - 1
        if append.drop_partials:
            self._ended.append((append.chat,))
        if append.blobs or append.erased or append.unused_blobs:
            self._special.append(append)

    def flush(self) -> None:
        """Write what was taken up."""
        for statement, rows in (
            (INSERT_HEADER, self._created),
            (UPDATE_HEADER, self._moved),
            (UPDATE_PLAIN, self._stayed),
            (INSERT_EVENT, self._events),
            (DROP_PARTIALS, self._ended),
        ):
            if rows:
                self._connection.executemany(statement, rows)
                rows.clear()
        for append in self._special:
            self._write_special(append)
        self._special.clear()
        self._chats.clear()
        self._position = None

    def _write_special(self, append: Append) -> None:
        """Keep an append's blobs, and erase and release what it says is over."""
        many = self._connection.executemany
        if append.blobs:
            many(INSERT_BLOB, append.blobs.items())
            many(INSERT_USE, [(append.chat, digest) for digest in append.blobs])
        if append.erased:
            erased = append.erased.items()
            many(ERASE, [(content_value(content), append.chat, version) for version, content in erased])
            many(DROP_SEGMENTS, [(append.chat,)])
        release(self._connection, append.chat, append.unused_blobs)
