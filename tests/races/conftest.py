"""The databases that races run over: memory and SQLite with a clock that a test moves, and PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from store.contract import Store
from store.memory import MemoryStore
from store.postgres import PostgresStore
from store.sqlite import SqliteStore
from tests.races.kit import ManualClock
from tests.store.conftest import (  # noqa: F401 - fixtures: databases that hold the tables already
    _migrated_postgres,
    _sqlite_template,
    migrated_database,
    migrated_sqlite,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def _base(kind: str, clock: ManualClock, request: pytest.FixtureRequest) -> Store:
    if kind == "memory":
        return MemoryStore(clock=clock)
    if kind == "sqlite":
        return SqliteStore(request.getfixturevalue("migrated_sqlite"), clock=clock)
    return PostgresStore(request.getfixturevalue("migrated_database"))


@pytest.fixture(params=["memory", "sqlite"])
async def base(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Store]:
    """A store whose clock the test moves."""
    async with _base(request.param, clock, request) as store:
        yield store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def any_base(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Store]:
    """Every back end, for races that need no clock."""
    async with _base(request.param, clock, request) as store:
        yield store
