"""Opening a SQLite file: its settings, the tables of a new one, the write-ahead log, and whether it is still there."""

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from store.errors import StoreUnavailable
from store.schema import LEVELS, VERSION_TABLE, needs_setup
from store.sqlite_sql import levels
from store.urls import SqliteUrl

_CHECKPOINT: Final = 4000
"""Pages of the write-ahead log (16 MB) that are moved into the file at once.

Pages that were written again meanwhile move once: with SQLite's own 1000 appends of 64 chats were a fifth slower. A
commit that moves them took 13 ms in place of 8.
"""

_CACHE: Final = 1_000
"""Kilobytes of pages that the writing connection keeps; others are read anew from what the system has cached. With 16
MB no more was appended in a second, by 64 chats or by 1,000, and the memory stayed taken."""

_READING_CACHE: Final = 250
"""Kilobytes of pages that the reading connection keeps: a chat is read once, from what the system has cached."""


class Place:
    """Where an open file stands: SQLite would go on writing into one that was deleted.

    Args:
        path: The file, which is there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._opened = self._path.stat()

    def check(self) -> None:
        """Check that the file still stands at its path.

        Raises:
            StoreUnavailable: It does not.
        """
        try:
            same = os.path.samestat(self._path.stat(), self._opened)
        except FileNotFoundError:
            same = False
        if not same:
            raise StoreUnavailable(
                f"{self._path} was deleted or replaced while it was in use; what is written would be lost"
            )


def open_for_writing(settings: SqliteUrl, set_up: Callable[[], None]) -> sqlite3.Connection:
    """Open the connection that writes; ``set_up`` is called before a new file gets its tables."""
    connection = _connect(settings)
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        row = oldest = None
        if VERSION_TABLE in tables:
            row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        if LEVELS in tables:
            oldest, _ = levels(connection)
        if needs_setup(settings.url, None if row is None else row[0], empty=not tables, oldest=oldest):
            set_up()
            from store.migrate import migrate  # takes half a second to import, and is needed once in a file's life

            migrate(settings.url)
        _enter_wal(connection, settings.busy_timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_reading(settings: SqliteUrl) -> sqlite3.Connection:
    """Open the connection that reads."""
    connection = _connect(settings, _READING_CACHE)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _enter_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to a write-ahead log. SQLite does not wait for a lock here when two processes switch at once, so we do."""
    deadline = time.monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            if mode != "wal":
                raise StoreUnavailable(f"SQLite cannot keep a write-ahead log here (journal mode {mode})")
            return


def _connect(settings: SqliteUrl, cache: int = _CACHE) -> sqlite3.Connection:
    connection = sqlite3.connect(settings.path, timeout=settings.busy_timeout, isolation_level=None)
    connection.execute(f"PRAGMA synchronous = {settings.synchronous}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
    connection.execute(f"PRAGMA cache_size = {-cache}")
    return connection
