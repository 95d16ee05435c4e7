"""The feed in a SQLite file: where it ends, its pages, and what changed behind a position.

Owns positions. There is one writer at a time, so they are given in the order of commits and without gaps within an
append: an append's ``tx`` is the position of its first event. A deletion takes a position too, kept in its tombstone,
so that none is used again and other processes see that something changed. The index of the feed has one entry for each
command, at its first event; the other events stand behind it under the primary key.
"""

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice, takewhile
from typing import Any, Final

from events.envelope import StoredEvent
from store.auditing import EventPlace
from store.columns import EVENTS, NUMBER, TEXT, check_row
from store.contract import FEED_START, FeedEvent, FeedPosition, Hint
from store.errors import FeedMoved, MalformedRow
from store.feed import AHEAD, fed, until_damage
from store.rows import EVENT_COLUMNS, event_of, event_place
from store.sqlite_sql import is_no_text, readable

_EVENT: Final = ", ".join(EVENT_COLUMNS)
_INDEX: Final = EVENT_COLUMNS.index("command_index")

LAST_HEAD: Final = """
SELECT tx, position, version, (SELECT max(version) FROM chat_events e WHERE e.chat = h.chat), chat
FROM chat_events h WHERE command_index = 0 ORDER BY tx DESC, position DESC LIMIT 1
"""
"""The last head of all, and from it the last event: only its own command's events can stand behind it in its chat."""

LAST_GRAVE: Final = "SELECT max(position) FROM tombstones"
LAST: Final = LAST_HEAD.replace("chat\nFROM", f"({LAST_GRAVE})\nFROM", 1)
"""``LAST_HEAD``, and the last position that a deletion took: by one statement, since every append asks."""

_LAST: Final = frozenset({(int,) * 5, (int, int, int, int, type(None))})
"""What ``LAST`` reads."""

CHANGED: Final = """
SELECT c.chat, c.version, c.status = 'pending' AND NOT c.is_foreign AND coalesce(c.due_at <= :now, 1), max(e.tx)
FROM chat_events e CROSS JOIN chats c ON c.chat = e.chat WHERE e.command_index = 0 AND e.tx > :seen GROUP BY c.chat
UNION ALL SELECT chat, version + 1, 0, position FROM tombstones WHERE position > :seen ORDER BY 4
"""
_HINTS: Final = frozenset({(str, int, int, int), (str, int, type(None), int)})
"""What a row of ``CHANGED`` holds."""

HEADS: Final = """
SELECT tx, chat, version, position FROM chat_events WHERE command_index = 0 AND tx > ? ORDER BY tx, position
"""
HEAD: Final = """
SELECT tx, chat, version, position FROM chat_events WHERE command_index = 0 AND tx = ? ORDER BY position LIMIT 1
"""
PLACES: Final = """
SELECT version, tx, position, command_index FROM chat_events WHERE chat = ? AND version > ? ORDER BY version LIMIT ?
"""
FROM_HEAD: Final = f"SELECT {_EVENT}, tx, position FROM chat_events WHERE chat = ? AND version >= ? ORDER BY version"


def last_position(connection: sqlite3.Connection) -> int:
    """Read the last position that was used.

    Raises:
        MalformedRow: It is not as it was written. A guess might use one again, and consumers would miss its event.
    """
    try:
        row = connection.execute(LAST).fetchone()
    except sqlite3.OperationalError as error:
        if not is_no_text(error):
            raise
        row = None
    if row is not None and tuple(map(type, row)) in _LAST:
        _, position, version, last, grave = row
        return int(max(position + last - version, grave or 0))
    return max(feed_end(connection).position, _last_grave(connection))


def _last_grave(connection: sqlite3.Connection) -> int:
    """Read the last position that a deletion took; 0 where there was none.

    Raises:
        MalformedRow: It is not as it was written.
    """
    with readable("tombstones"):
        (position,) = connection.execute(LAST_GRAVE).fetchone()
    if position is None:
        return 0
    if type(position) is not int:
        (chat,) = connection.execute("SELECT chat FROM tombstones WHERE position = ?", (position,)).fetchone()
        check_row("tombstones", ("position",), (NUMBER,), (position,), chat=chat)
    return int(position)


def feed_end(connection: sqlite3.Connection) -> FeedPosition:
    """Read the position of the last event.

    Raises:
        MalformedRow: It is not as it was written.
    """
    with readable(EVENTS):
        head = connection.execute(LAST_HEAD).fetchone()
    if head is None:
        return FEED_START
    check_row(EVENTS, ("tx", "position", "version", "version"), (NUMBER,) * 4, head, chat=head[-1], version=head[2])
    tx, position, version, last, _ = head
    return FeedPosition(tx, position + last - version)


def changed_since(connection: sqlite3.Connection, seen: int, now: int) -> tuple[list[Hint], int]:
    """Return hints for the chats that were changed or deleted behind a position, and the position that is seen now."""
    with readable(EVENTS):
        rows = connection.execute(CHANGED, {"seen": seen, "now": now}).fetchall()
    # A damaged row gives no hint: whoever reads it says what is wrong with it.
    rows = [row for row in rows if tuple(map(type, row)) in _HINTS]
    return [Hint(row[0], row[1], bool(row[2])) for row in rows], max((row[3] for row in rows), default=seen)


def read_feed(connection: sqlite3.Connection, after: FeedPosition, limit: int) -> list[FeedEvent]:
    """Read whole appends behind ``after``, and the rest of the one that it lies in, until ``limit`` is reached.

    Raises:
        FeedEventUnreadable: The first event behind ``after`` cannot be read.
        FeedMoved: ``after`` is ahead of the file.
        MalformedRow: An append cannot be put in its place.
    """
    # Closed whatever happens: a statement left open would keep its connection at what it saw.
    with closing(_heads(connection, after.tx)) as heads, closing(_events(connection, heads, after, limit)) as events:
        found = until_damage(events)
    if not found and after.position > last_position(connection):
        raise FeedMoved(AHEAD)
    return found


def read_places(connection: sqlite3.Connection, chat: str, after: int, limit: int) -> list[EventPlace]:
    """Read where events of a chat stand.

    Raises:
        MalformedRow: One is not as it was written.
    """
    with readable(EVENTS, chat):
        rows = connection.execute(PLACES, (chat, after, limit)).fetchall()
    return [event_place(chat, row) for row in rows]


def _heads(connection: sqlite3.Connection, tx: int) -> Generator[tuple[int, str, int], None, None]:
    """Tell where each append from ``tx`` on begins."""
    with readable(EVENTS):
        if (head := connection.execute(HEAD, (tx,)).fetchone()) is not None:
            yield _first_of(head)
        with closing(connection.execute(HEADS, (tx,))) as rows:
            for row in rows:
                if row[0] != tx:
                    yield (head := _first_of(row))
                    tx = head[0]


def _first_of(head: Sequence[Any]) -> tuple[int, str, int]:
    """Return the transaction of an append, its chat, and its first version; ``head`` is of the first of its commands.

    Where that one's position is damaged, it is of another, which comes as far behind as its position says.
    """
    tx, chat, version, position = head
    check_row(EVENTS, ("tx", "chat", "version"), (NUMBER, TEXT, NUMBER), head, chat=chat, version=version)
    return tx, chat, version - max(position - tx, 0) if type(position) is int else version


def _events(
    connection: sqlite3.Connection, heads: Iterator[tuple[int, str, int]], after: FeedPosition, limit: int
) -> Generator[FeedEvent, None, None]:
    """Read the events of whole appends.

    Raises:
        FeedEventUnreadable: One cannot be read.
    """
    count = 0
    while count < limit and (head := next(heads, None)) is not None:
        tx, chat, first = head
        for place, row in enumerate(_rows(connection, chat, first, tx)):
            # Positions are given without gaps within an append.
            position = FeedPosition(tx, row[-1] if type(row[-1]) is int else tx + place)
            if position > after:
                yield fed(position, chat, partial(_event_of, chat, row, tx))
                count += 1


def _rows(connection: sqlite3.Connection, chat: str, first: int, tx: int) -> Iterator[Sequence[Any]]:
    """Read the rows of one append. Those behind it are not touched: SQLite reads as far as it is asked."""

    def is_own(row: Sequence[Any]) -> bool:
        return bool(row[-2] == tx or row[_INDEX] != 0)

    read = 0
    try:
        with closing(connection.execute(FROM_HEAD, (chat, first))) as rows:
            for row in takewhile(is_own, rows):
                read += 1
                yield row
        return
    except sqlite3.OperationalError as error:
        if not is_no_text(error):
            raise
    # Once more, with what is no text as bytes: the event that it belongs to is told of, and can be passed.
    connection.text_factory = _text_or_bytes
    try:
        again = connection.execute(FROM_HEAD, (chat, first)).fetchall()
    finally:
        connection.text_factory = str
    yield from islice(takewhile(is_own, again), read, None)


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _event_of(chat: str, row: Sequence[Any], tx: int) -> StoredEvent:
    """Return the event of a row of ``FROM_HEAD``.

    Raises:
        MalformedRow: It is not as it was written, or is torn from its append.
    """
    event = event_of(chat, row[:-2])
    version = event.envelope.version
    check_row(EVENTS, ("tx", "position"), (NUMBER, NUMBER), row[-2:], chat=chat, version=version)
    if row[-2] != tx:
        why = f"column tx holds {row[-2]}, its append has {tx}"
        raise MalformedRow(chat, version, why, table=EVENTS, column="tx")
    return event
