"""Another process's lock on a SQLite file: finding it, and saying what is waited for.

Owns the words. SQLite itself waits, in C and without a sound; who waits asks here after a while.
"""

import shlex
import sqlite3
from pathlib import Path
from typing import Final

from store.log import get_logger

PATIENCE: Final = 1.0
"""Seconds that work may take before it is looked whether a lock holds it up."""

TELL_AGAIN: Final = 30.0
"""Seconds after which a lock that holds up work is told again."""

_log = get_logger("chatfold.store")


def is_locked(path: Path, statement: str) -> bool:
    """Tell whether a lock holds up a statement now; does not wait."""
    try:
        # Read-write and not more: looking must not make the file.
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=0, isolation_level=None)
    except sqlite3.Error:
        return False  # it cannot be opened: whoever waits for it will say so
    try:
        connection.execute(statement).fetchall()
    except sqlite3.Error as error:
        return _is_busy(error)
    finally:
        connection.close()
    return False


def tell_locked(path: Path) -> None:
    """Log what is waited for."""
    _log.warning("database_locked", file=str(path), look=_look(path))


def said_of(path: Path, error: sqlite3.Error) -> str:
    """Return what to say of a driver's error: which file, and who may look into a lock."""
    if _is_busy(error):
        return f"{path}: database is locked by another process; `{_look(path)}` shows which have it open"
    return f"{path}: {error}"


def _look(path: Path) -> str:
    return f"fuser -v {shlex.quote(str(path))}"


def _is_busy(error: sqlite3.Error) -> bool:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
