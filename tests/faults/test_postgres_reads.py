"""Reads while the server ends the connections that they go over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from store.errors import StoreUnavailable
from store.postgres import PostgresStore
from store.urls import parse_postgres

_ENDS_ITSELF: Final = """
    SELECT CASE WHEN nextval('tries') <= {} THEN pg_terminate_backend(pg_backend_pid()) END, currval('tries')
"""


@pytest.mark.parametrize("lost", ["one", "all"])
async def test_a_read_outlives_the_connections_of_the_pool(postgres_database: Callable[[], str], lost: str) -> None:
    url = postgres_database()
    times = 1 if lost == "one" else parse_postgres(url).pool_size
    async with PostgresStore(url) as store:
        await store.read("CREATE SEQUENCE tries", {})
        ((_, tries),) = await store.read(_ENDS_ITSELF.format(times), {})
    assert tries == times + 1


async def test_a_read_that_is_always_lost_ends(postgres_database: Callable[[], str]) -> None:
    url = postgres_database()
    async with PostgresStore(url) as store:
        await store.read("CREATE SEQUENCE tries", {})
        with pytest.raises(StoreUnavailable, match="the connection was lost"):
            await store.read(_ENDS_ITSELF.format(1_000), {})
        ((_, tries),) = await store.read(_ENDS_ITSELF.format(0), {})
    assert tries == parse_postgres(url).pool_size + 2
