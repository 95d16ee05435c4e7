"""Which schema this release needs, what to do about the one that is found, and how neighbouring releases share one.

Owns the list of revisions as plain data, so that an up-to-date database is opened without Alembic; a test holds the
list to the migration scripts. The scripts themselves are in ``store.migrations``.

Workers of two neighbouring releases may share a database while a service is upgraded. The schema goes first: a
revision that only adds to it names the oldest revision whose release can still work with it. What is written goes
second: new forms of events are written only once the database's write level was raised, after the last worker of the
older release has gone; chats written before keep the level that they have.
"""

from collections.abc import Sequence
from typing import Any, Final

from events.levels import FIRST, GENERATION
from store.columns import NUMBER, TEXT, check_row
from store.errors import MalformedRow, SchemaOutdated, SchemaTooNew

VERSION_TABLE: Final = "chatfold_version"
"""Where Alembic keeps the revision. Not its default name: an application in the same database may use Alembic too."""

REVISIONS: Final = ("0001", "0002")
"""Revisions from the first on."""

NEEDED: Final = REVISIONS[-1]


READER_LEVEL: Final = GENERATION
"""The highest level of chats that this release can run: it rises when a release writes what the one before cannot read
(``events.levels``).

A new database is written at the level of the release that set it up.
"""


LEVELS: Final = "schema_levels"
"""The table with the database's write level, in one row."""


def levels_of(row: Sequence[Any] | None) -> tuple[str, int]:
    """Return the oldest revision and the write level that the row of ``LEVELS`` says.

    Raises:
        MalformedRow: They are no text and no number, or the row is gone.
    """
    if row is None:
        raise MalformedRow(None, None, "its row is gone", table=LEVELS)
    check_row(LEVELS, ("oldest", "write_level"), (TEXT, NUMBER), row)
    return row[0], row[1]


def level_of_new_chat(write_level: int, needed: int = FIRST) -> int:
    """Return the level of a chat that begins.

    Args:
        write_level: The level of the database, as this process knows it.
        needed: What its first events need, where they were written elsewhere: by a fork's parent, or in a log file.
    """
    return max(min(write_level, READER_LEVEL), needed)


def needs_setup(url: str, found: str | None, *, empty: bool, oldest: str | None = None) -> bool:
    """Return whether a database is to be set up at once.

    Args:
        url: Names the database in errors; without a password.
        found: The revision found in the version table, or None without such a table.
        empty: Whether the database has no tables at all.
        oldest: The oldest revision whose release can work with this schema, as the database says.

    Raises:
        SchemaOutdated: An older schema, or a database with tables of others and none of ours.
        SchemaTooNew: A schema of a newer release.
    """
    if found == NEEDED:
        return False
    if found is None and empty:
        return True
    if found is not None and found not in REVISIONS:
        if oldest is not None and oldest in REVISIONS:
            return False
        raise SchemaTooNew(url, found, NEEDED)
    raise SchemaOutdated(url, found, NEEDED)
