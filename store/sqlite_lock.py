"""What stands in the way of a SQLite file: another process's lock, found and told, and what to do about other errors.

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

_REMEDIES: Final[dict[int | None, str]] = {
    sqlite3.SQLITE_FULL: "nothing was written; free space on its disk, and writing goes on",
    sqlite3.SQLITE_READONLY: "nothing was written; let this user write to the file and to its folder",
    sqlite3.SQLITE_CANTOPEN: "the folder must be there, and this user must be able to write to it",
    sqlite3.SQLITE_IOERR: "look at the disk; `chatfold verify --all` tells whether the chats are sound",
}
"""What to do about what SQLite says."""

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
    """Return what to say of a driver's error: which file, and what to do or where to look."""
    if _is_busy(error):
        return f"{path}: database is locked by another process; `{_look(path)}` shows which have it open"
    remedy = _REMEDIES.get(_code(error))
    return f"{path}: {error}" if remedy is None else f"{path}: {error}; {remedy}"


def _look(path: Path) -> str:
    return f"fuser -v {shlex.quote(str(path))}"


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: sqlite3.Error) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
