"""The PostgreSQL back end keeps the contract."""

from collections.abc import AsyncIterator

import pytest

from store.contract import Store
from store.postgres import PostgresStore
from tests.store.contract import StoreContract


class TestPostgres(StoreContract):
    @pytest.fixture
    async def store(self, migrated_database: str) -> AsyncIterator[Store]:
        async with PostgresStore(migrated_database) as store:
            yield store

    @pytest.fixture
    async def other(self, migrated_database: str, store: Store) -> AsyncIterator[Store]:
        async with PostgresStore(migrated_database) as other:
            yield other
