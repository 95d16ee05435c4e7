"""Databases that hold the tables already: making them anew for every test would take most of the tests' time."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from store.migrate import migrate
from tests.postgres import PostgresServer


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file, to be copied."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def migrated_sqlite(tmp_path: Path, _sqlite_template: Path) -> str:
    """The URL of a fresh SQLite file with empty tables, that commits fast."""
    path = shutil.copyfile(_sqlite_template, tmp_path / "chats.db")
    return f"sqlite:///{path}?synchronous=normal&poll=0.02"


@pytest.fixture(scope="session")
def _migrated_postgres(postgres_server: PostgresServer) -> Iterator[str]:
    """A migrated PostgreSQL database of this process."""
    with postgres_server.database() as url:
        migrate(url)
        yield url


@pytest.fixture
def migrated_database(_migrated_postgres: str) -> str:
    """The URL of a PostgreSQL database with empty tables."""
    with psycopg.connect(_migrated_postgres, autocommit=True) as connection:
        names = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' "
            "AND relname NOT IN ('chatfold_version', 'schema_levels')"
        ).fetchall()
        for (name,) in names:
            connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
    return _migrated_postgres
