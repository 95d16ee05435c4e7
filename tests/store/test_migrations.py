"""Migrations and models give the same database, on both kinds; and a database is brought forward safely."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

import store
from store import open_store, schema
from store.contract import Appended
from store.errors import InvalidStoreUrl, SchemaOutdated, SchemaTooNew, StoreUnavailable
from store.migrate import migrate
from store.tables import metadata
from tests.store.catalogs import postgres_catalog, sqlite_catalog
from tests.store.making import CHAT, appending

MIGRATIONS = Path(store.__file__).parent / "migrations"

OPENER = """
import asyncio, sys
from store import open_store
from tests.store.making import appending

async def main():
    sys.stdin.readline()
    async with open_store(sys.argv[1]) as store:
        print(await store.append(appending(0, chat=sys.argv[2])))

print("ready", flush=True)
asyncio.run(main())
"""


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return ScriptDirectory.from_config(config)


def test_the_list_of_revisions_is_that_of_the_scripts() -> None:
    revisions = [script.revision for script in scripts().walk_revisions()]
    assert tuple(reversed(revisions)) == schema.REVISIONS


def test_migrations_are_numbered_and_described() -> None:
    for number, script in enumerate(reversed(list(scripts().walk_revisions())), 1):
        name = Path(script.path).name
        assert re.fullmatch(r"\d{4}_[a-z_]+\.py", name), name
        assert script.revision == name[:4] == f"{number:04}"
        assert script.doc


def test_migrations_and_models_agree_on_sqlite(tmp_path: Path) -> None:
    migrate(f"sqlite:///{tmp_path}/migrated.db")
    engine = create_engine(f"sqlite:///{tmp_path}/declared.db", poolclass=NullPool)
    metadata.create_all(engine)
    migrated, declared = sqlite_catalog(tmp_path / "migrated.db"), sqlite_catalog(tmp_path / "declared.db")
    assert set(migrated) == set(metadata.tables)
    assert migrated == declared


def test_migrations_and_models_agree_on_postgres(postgres_database: Callable[[], str]) -> None:
    migrated, declared = postgres_database(), postgres_database()
    migrate(migrated)
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(declared), poolclass=NullPool)
    metadata.create_all(engine)
    assert postgres_catalog(migrated) == postgres_catalog(declared)


def test_a_changed_predicate_is_seen(tmp_path: Path) -> None:
    migrate(f"sqlite:///{tmp_path}/one.db")
    migrate(f"sqlite:///{tmp_path}/two.db")
    connection = sqlite3.connect(tmp_path / "two.db")
    connection.executescript(
        "DROP INDEX ix_chats_ready; CREATE INDEX ix_chats_ready ON chats (status, ready_at) WHERE ready_at IS NULL"
    )
    connection.close()
    assert sqlite_catalog(tmp_path / "one.db") != sqlite_catalog(tmp_path / "two.db")


def test_payloads_are_bytes_and_times_integers(postgres_database: Callable[[], str]) -> None:
    url = postgres_database()
    migrate(url)
    types = {(table, column): kind for table, column, _, kind, *_ in postgres_catalog(url)["columns"]}
    assert {kind for (_, column), kind in types.items() if column in {"facts", "content", "control", "data"}} == {
        "bytea"
    }
    assert {kind for (_, column), kind in types.items() if column.endswith("_at")} == {"bigint"}
    assert types["chat_events", "tx"] == "xid8"
    assert types["chat_events", "position"] == "bigint"


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest) -> str:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_url"))
    return str(request.getfixturevalue("postgres_database")())


def execute(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute(statement)
        connection.commit()
        connection.close()
    else:
        with psycopg.connect(url) as connected:
            connected.execute(statement.encode())


async def test_an_empty_database_is_set_up_at_open(empty: str) -> None:
    async with open_store(empty) as opened:
        await opened.append(appending(0))
    async with open_store(empty) as opened:
        assert len(await opened.read_events(CHAT)) == 1
    migrate(empty)
    async with open_store(empty) as opened:
        assert len(await opened.read_events(CHAT)) == 1


async def test_an_older_schema_is_refused(empty: str) -> None:
    migrate(empty)
    execute(empty, f"DELETE FROM {schema.VERSION_TABLE}")
    with pytest.raises(SchemaOutdated, match="run `chatfold migrate`"):
        await open_store(empty).__aenter__()


async def test_a_newer_schema_that_only_adds_is_worked_with(empty: str) -> None:
    migrate(empty)
    execute(empty, f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
    async with open_store(empty) as opened:
        assert await opened.append(appending(0)) == Appended()


async def test_a_newer_schema_is_refused(empty: str) -> None:
    migrate(empty)
    execute(empty, f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
    execute(empty, "UPDATE schema_levels SET oldest = '9999'")
    with pytest.raises(SchemaTooNew, match=r"9999, which a newer release wrote.*upgrade chatfold") as caught:
        await open_store(empty).__aenter__()
    assert (caught.value.found, caught.value.needed) == ("9999", schema.NEEDED)
    with pytest.raises(SchemaTooNew):
        migrate(empty)


async def test_tables_of_others_are_not_joined_unasked(empty: str) -> None:
    execute(empty, "CREATE TABLE theirs (x integer)")
    with pytest.raises(SchemaOutdated, match="schema none"):
        await open_store(empty).__aenter__()
    migrate(empty)
    async with open_store(empty) as opened:
        await opened.append(appending(0))


def test_processes_that_open_an_empty_database_at_once(empty: str) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, empty, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=MIGRATIONS.parents[1],
        )
        for name in ("a", "b")
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["Appended()\n"] * 2
    assert [process.returncode for process in processes] == [0, 0]


@pytest.mark.parametrize("url", ["postgresql://nobody@127.0.0.1:9/none", "sqlite:////nowhere/at/all.db"])
async def test_a_database_out_of_reach(url: str) -> None:
    with pytest.raises(StoreUnavailable):
        await open_store(url).__aenter__()
    with pytest.raises(StoreUnavailable):
        migrate(url)


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("this is a letter, not a database. " * 50)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await open_store(f"sqlite:///{tmp_path}/x.db").__aenter__()


def test_what_cannot_be_migrated() -> None:
    migrate("memory://")
    with pytest.raises(InvalidStoreUrl, match="no store of this kind"):
        migrate("mysql://host/db")
