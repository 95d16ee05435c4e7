"""URLs of stores: what is opened, what is refused, and what is not imported on the way."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from store import open_store
from store.errors import InvalidStoreUrl, MissingExtra, StoreError
from store.memory import MemoryStore
from store.migrate import migrate
from store.postgres import PostgresStore
from store.sqlite import SqliteStore
from store.urls import parse_postgres, parse_sqlite, redacted

ROOT = Path(__file__).parents[2]
HEAVY = ("sqlmodel", "sqlalchemy", "alembic", "pydantic")


def run(code: str, *arguments: str) -> str:
    """Run code in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("sqlite:///chats.db", SqliteStore),
        ("sqlite:////var/lib/chats.db?synchronous=normal", SqliteStore),
        ("postgresql://user@host/database", PostgresStore),
        ("postgres:///database?host=/run/pg", PostgresStore),
        ("memory://", MemoryStore),
    ],
)
def test_a_url_names_a_back_end(url: str, kind: type[Any]) -> None:
    assert type(open_store(url)) is kind


@pytest.mark.parametrize(
    "url",
    [
        "",
        "chats.db",
        "sqlite:",
        "sqlite://",
        "sqlite:///",
        "sqlite://chats.db",
        "sqlite:///:memory:",
        "sqlite:///x.db?synchronous=off",
        "sqlite:///x.db?busy_timeout=soon",
        "sqlite:///x.db?busy_timeout=-1",
        "sqlite:///x.db?poll=0",
        "sqlite:///x.db?poll=nan",
        "sqlite:///x.db?typo=1",
        "memory://here",
        "memory",
        "mysql://host/db",
        "postgresql://host/db?pool_size=0",
        "postgresql://host/db?pool_size=many",
        "postgresql://host/db?pool_size=٣",
    ],
)
def test_what_is_no_url_is_refused_with_the_forms(url: str) -> None:
    with pytest.raises(InvalidStoreUrl, match=r"sqlite:///chats\.db") as caught:
        open_store(url)
    assert isinstance(caught.value, StoreError | ValueError)


def test_the_settings_of_sqlite() -> None:
    settings = parse_sqlite("sqlite:///a%20b/c.db?synchronous=NORMAL&busy_timeout=2.5&poll=1")
    assert settings.path == Path("a%20b/c.db")
    assert (settings.synchronous, settings.busy_timeout, settings.poll) == ("normal", 2.5, 1.0)
    assert parse_sqlite("sqlite:////abs/c.db").path == Path("/abs/c.db")
    assert parse_sqlite("sqlite:///c.db").synchronous == "full"


def test_the_settings_of_postgres() -> None:
    settings = parse_postgres("postgresql://me:secret@host/db?host=%2Frun%2Fpg&pool_size=3&sslmode=require")
    assert settings.pool_size == 3
    assert settings.conninfo == "postgresql://me:secret@host/db?host=%2Frun%2Fpg&sslmode=require"
    assert settings.url == "postgresql://me:***@host/db?host=%2Frun%2Fpg&pool_size=3&sslmode=require"
    assert parse_postgres("postgresql://host/db?pool_size=3").conninfo == "postgresql://host/db"
    assert parse_postgres("postgresql://host/db").conninfo == "postgresql://host/db"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql:///db?password=secret&user=me", "postgresql:///db?password=***&user=me"),
        ("mysql://me:p:w@host/db", "mysql://me:***@host/db"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert redacted(url) == shown


def test_a_refused_url_does_not_show_its_password() -> None:
    with pytest.raises(InvalidStoreUrl) as caught:
        open_store("mysql://me:secret@host/db")
    assert "secret" not in str(caught.value) + caught.value.url


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("psycopg", "store.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'chatfold\[postgres\]'"):
        open_store("postgresql://host/db")


OPEN = """
import asyncio, sys
from store import open_store

async def main():
    async with open_store(sys.argv[1]) as store:
        assert await store.load_header("none") is None
        async with store.hints():
            pass

asyncio.run(main())
print(" ".join(sorted(sys.modules)))
"""


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
def test_a_database_that_is_up_to_date_is_opened_without_the_heavy_libraries(
    kind: str, request: pytest.FixtureRequest, sqlite_url: str
) -> None:
    if kind == "postgres":
        url = str(request.getfixturevalue("migrated_database"))
    else:
        url = "memory://" if kind == "memory" else sqlite_url
    migrate(url)
    modules = set(run(OPEN, url).split())
    assert not modules & set(HEAVY)
    assert ("psycopg" in modules) == (kind == "postgres")
    assert ("sqlite3" in modules) == (kind == "sqlite")


def test_the_package_alone_imports_no_back_end() -> None:
    modules = set(run("import sys, store; print(' '.join(sys.modules))").split())
    assert not modules & {*HEAVY, "psycopg", "sqlite3", "asyncio", "store.memory", "store.sqlite", "store.postgres"}
