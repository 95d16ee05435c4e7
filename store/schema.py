"""Which schema this release needs, and what to do about the one that is found.

Owns the list of revisions as plain data, so that an up-to-date database is opened without Alembic; a test holds the
list to the migration scripts. The scripts themselves are in ``store.migrations``.
"""

from typing import Final

from store.errors import SchemaOutdated, SchemaTooNew

VERSION_TABLE: Final = "chatfold_version"
"""Where Alembic keeps the revision. Not its default name: an application in the same database may use Alembic too."""

REVISIONS: Final = ("0001", "0002")
"""Revisions from the first on."""

NEEDED: Final = REVISIONS[-1]


def needs_setup(url: str, found: str | None, *, empty: bool) -> bool:
    """Return whether a database is to be set up at once.

    Args:
        url: Names the database in errors; without a password.
        found: The revision found in the version table, or None without such a table.
        empty: Whether the database has no tables at all.

    Raises:
        SchemaOutdated: An older schema, or a database with tables of others and none of ours.
        SchemaTooNew: A schema of a newer release.
    """
    if found == NEEDED:
        return False
    if found is None and empty:
        return True
    if found is not None and found not in REVISIONS:
        raise SchemaTooNew(url, found, NEEDED)
    raise SchemaOutdated(url, found, NEEDED)
