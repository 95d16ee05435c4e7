"""Bringing a database to the schema of this release, by Alembic. Everything heavy is imported here, and here alone.

Concurrent callers are safe: each works in one transaction that the database serialises, and the later ones find nothing
left to do.
"""

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from store.errors import InvalidStoreUrl, MissingExtra, SchemaTooNew, StoreUnavailable
from store.failpoints import reach
from store.postgres_feed import NEWEST, NUMBER_ANEW
from store.schema import NEEDED, READER_LEVEL, REVISIONS, VERSION_TABLE
from store.sqlite_lock import is_locked, tell_locked
from store.urls import parse_postgres, parse_sqlite, redacted

_ADVISORY_LOCK = 0x63686174666F6C64
"""Key of the lock that serialises migrations of one PostgreSQL database: "chatfold"."""


def migrate(url: str, *, to: str = NEEDED) -> None:
    """Run a database's migrations forward; blocks until done.

    Events that came to PostgreSQL with a dump from another server are given places in the feed of this one.

    Args:
        url: A store URL, as for ``open_store``. There is nothing to migrate in ``memory://``.
        to: Up to which revision; the schema of this release where nothing is said. One that was passed already changes
            nothing.

    Raises:
        InvalidStoreUrl: Not a store URL.
        SchemaTooNew: A newer release wrote the schema.
        StoreUnavailable: The database cannot be reached, or refused; nothing was changed.
    """
    scheme = url.partition(":")[0]
    try:
        if scheme == "sqlite":
            _migrate_sqlite(url, to)
        elif scheme in {"postgresql", "postgres"}:
            _migrate_postgres(url, to)
        elif url != "memory://":
            raise InvalidStoreUrl(redacted(url), "no store of this kind")
    except DBAPIError as error:
        # Without SQLAlchemy's own words around those of the driver.
        raise StoreUnavailable(f"{redacted(url)} was not migrated: {error.orig or error}") from error
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(f"{redacted(url)} was not migrated: {error}") from error


def _migrate_sqlite(url: str, to: str) -> None:
    settings = parse_sqlite(url)

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(settings.path, timeout=settings.busy_timeout, isolation_level=None)

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver itself would open no transaction before DDL.
        if is_locked(settings.path, "BEGIN IMMEDIATE"):
            tell_locked(settings.path)
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    with engine.begin() as connection:
        _upgrade(connection, url, to)


def _migrate_postgres(url: str, to: str) -> None:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra("PostgreSQL", "postgres") from error
    settings = parse_postgres(url)
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(settings.conninfo), poolclass=NullPool
    )
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
            _upgrade(connection, settings.url, to)
            if to == NEEDED:
                _number_anew(connection)
    except psycopg.Error as error:
        raise StoreUnavailable(f"{settings.url} was not migrated: {error}") from error


def _upgrade(connection: Connection, url: str, to: str) -> None:
    found = _revision(connection)
    if found is not None and found in REVISIONS and REVISIONS.index(found) >= REVISIONS.index(to):
        return
    if found is not None and found not in REVISIONS:
        raise SchemaTooNew(url, found, NEEDED)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    reach("migration.begun")
    command.upgrade(config, to)
    if found is None and to == NEEDED:
        # Nobody wrote here before, so nobody of an older release does.
        connection.execute(text("UPDATE schema_levels SET write_level = :level"), {"level": READER_LEVEL})
    reach("migration.written")


def _number_anew(connection: Connection) -> None:
    """Give the feed's events transactions of this server, where they came with a dump from another one."""
    end, newest = connection.exec_driver_sql(NEWEST).one()
    if newest >= end:
        connection.exec_driver_sql("LOCK TABLE chat_events IN SHARE ROW EXCLUSIVE MODE")
        connection.exec_driver_sql(NUMBER_ANEW)


def _revision(connection: Connection) -> str | None:
    if not connection.dialect.has_table(connection, VERSION_TABLE):
        return None
    row = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
    return None if row is None else str(row[0])
