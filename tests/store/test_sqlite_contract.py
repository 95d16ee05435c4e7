"""The SQLite back end keeps the contract."""

from collections.abc import AsyncIterator

import pytest

from store.contract import Store
from store.sqlite import SqliteStore
from tests.store.contract import StoreContract


class TestSqlite(StoreContract):
    @pytest.fixture
    async def store(self, sqlite_url: str) -> AsyncIterator[Store]:
        async with SqliteStore(f"{sqlite_url}?synchronous=normal") as store:
            yield store

    @pytest.fixture
    async def other(self, sqlite_url: str, store: Store) -> AsyncIterator[Store]:
        async with SqliteStore(f"{sqlite_url}?synchronous=normal") as other:
            yield other
