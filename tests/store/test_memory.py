"""The memory back end keeps the contract."""

from collections.abc import AsyncIterator

import pytest

from store.contract import Store
from store.memory import MemoryStore
from tests.store.contract import StoreContract


class TestMemory(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        async with MemoryStore() as store:
            yield store

    @pytest.fixture
    def other(self, store: Store) -> Store:
        return store
