"""The SQLite back end keeps the contract."""

from collections.abc import AsyncIterator

import pytest

from store.contract import Store
from store.sqlite import SqliteStore
from tests.store.contract import StoreContract


class TestSqlite(StoreContract):
    @pytest.fixture
    async def store(self, migrated_sqlite: str) -> AsyncIterator[Store]:
        async with SqliteStore(migrated_sqlite) as store:
            yield store

    @pytest.fixture
    async def other(self, migrated_sqlite: str, store: Store) -> AsyncIterator[Store]:
        async with SqliteStore(migrated_sqlite) as other:
            yield other
