"""The feed in a SQLite file: where it ends, its pages, and what changed behind a position.

Owns positions. There is one writer at a time, so they are given in the order of commits and without gaps within an
append: an append's ``tx`` is the position of its first event. A deletion takes a position too, kept in its tombstone,
so that none is used again and other processes see that something changed. The index of the feed has one entry for each
command, at its first event; the other events stand behind it under the primary key.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing
from itertools import takewhile
from typing import Final

from events.ids import ChatId
from store.contract import FEED_START, FeedEvent, FeedPosition, Hint
from store.errors import FeedMoved
from store.feed import AHEAD
from store.rows import EVENT_COLUMNS, event_of

_EVENT: Final = ", ".join(EVENT_COLUMNS)

LAST_EVENT: Final = """
SELECT tx, position + (SELECT max(version) FROM chat_events e WHERE e.chat = h.chat) - version
FROM chat_events h WHERE command_index = 0 ORDER BY tx DESC, position DESC LIMIT 1
"""
"""The last head of all, and from it the last event: only its own command's events can stand behind it in its chat."""

LAST_POSITION: Final = (
    f"SELECT max(coalesce(({LAST_EVENT.replace('tx, ', '', 1)}), 0), "
    "coalesce((SELECT max(position) FROM tombstones), 0))"
)
CHANGED: Final = """
SELECT c.chat, c.version, c.status = 'pending' AND NOT c.is_foreign AND coalesce(c.due_at <= :now, 1), max(e.tx)
FROM chat_events e CROSS JOIN chats c ON c.chat = e.chat WHERE e.command_index = 0 AND e.tx > :seen GROUP BY c.chat
UNION ALL SELECT chat, version + 1, 0, position FROM tombstones WHERE position > :seen ORDER BY 4
"""
HEADS: Final = """
SELECT tx, chat, version FROM chat_events WHERE command_index = 0 AND tx > ? ORDER BY tx, position
"""
HEAD: Final = """
SELECT chat, version FROM chat_events WHERE command_index = 0 AND tx = ? ORDER BY position LIMIT 1
"""
FROM_HEAD: Final = f"SELECT {_EVENT}, tx, position FROM chat_events WHERE chat = ? AND version >= ? ORDER BY version"


def last_position(connection: sqlite3.Connection) -> int:
    """Read the last position that was used."""
    return int(connection.execute(LAST_POSITION).fetchone()[0])


def feed_end(connection: sqlite3.Connection) -> FeedPosition:
    """Read the position of the last event."""
    row = connection.execute(LAST_EVENT).fetchone()
    return FEED_START if row is None else FeedPosition(*row)


def changed_since(connection: sqlite3.Connection, seen: int, now: int) -> tuple[list[Hint], int]:
    """Return hints for the chats that were changed or deleted behind a position, and the position that is seen now."""
    rows = connection.execute(CHANGED, {"seen": seen, "now": now}).fetchall()
    return [Hint(row[0], row[1], bool(row[2])) for row in rows], max((row[3] for row in rows), default=seen)


def read_feed(connection: sqlite3.Connection, after: FeedPosition, limit: int) -> list[FeedEvent]:
    """Read whole appends behind ``after``, and the rest of the one that it lies in, until ``limit`` is reached.

    Raises:
        FeedMoved: ``after`` is ahead of the file.
    """
    found = list[FeedEvent]()
    # Closed whatever happens: a statement left open would keep its connection at what it saw.
    with closing(_heads(connection, after.tx)) as heads:
        while len(found) < limit and (head := next(heads, None)) is not None:
            found += [event for event in _append_at(connection, *head) if event.position > after]
    if not found and after.position > last_position(connection):
        raise FeedMoved(AHEAD)
    return found


def _heads(connection: sqlite3.Connection, tx: int) -> Generator[tuple[int, str, int], None, None]:
    """Tell where each append from ``tx`` on begins."""
    if (head := connection.execute(HEAD, (tx,)).fetchone()) is not None:
        yield (tx, *head)
    with closing(connection.execute(HEADS, (tx,))) as rows:
        for row in rows:
            if row[0] != tx:
                tx = row[0]
                yield row


def _append_at(connection: sqlite3.Connection, tx: int, chat: str, version: int) -> list[FeedEvent]:
    """Read the events of one append. The rows behind it are not touched: SQLite reads as far as it is asked."""
    with closing(connection.execute(FROM_HEAD, (chat, version))) as rows:
        own = list(takewhile(lambda row: row[-2] == tx, rows))
    return [FeedEvent(FeedPosition(tx, row[-1]), ChatId(chat), event_of(chat, row[:-2])) for row in own]
