"""Who cannot connect to PostgreSQL is told why, in libpq's or the server's words, and without the password."""

from __future__ import annotations

import signal

import psycopg
import pytest

import store.postgres_pool
from store.errors import StoreUnavailable
from store.postgres import PostgresStore
from store.postgres_pool import Pool, connect
from store.urls import parse_postgres
from tests.faults.servers import OwnServer

SECRET = "wrong horse"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool says what it knows when it gives up, which it knows at once."""
    monkeypatch.setattr(store.postgres_pool, "PATIENCE", 1.0)


async def told(url: str) -> list[str]:
    """What the first connection of a store and what its pool say."""
    settings = parse_postgres(url)
    with pytest.raises(StoreUnavailable) as first:
        await connect(settings)
    pool = Pool(settings)
    await pool.open()
    try:
        with pytest.raises(StoreUnavailable) as later:
            async with pool.lent():
                pass
        with pytest.raises(StoreUnavailable) as writing:
            await pool.line()
    finally:
        await pool.close()
    return [str(caught.value) for caught in (first, later, writing)]


@pytest.mark.parametrize(
    ("place", "why"),
    [("127.0.0.1:1", "Connection refused"), ("nowhere.invalid", "failed to resolve host 'nowhere.invalid'")],
)
async def test_a_server_that_is_not_there(place: str, why: str) -> None:
    for said in await told(f"postgresql://u:wrong%20horse@{place}/db"):
        assert f"no connection to postgresql://u:***@{place}/db" in said
        assert why in said
        assert SECRET not in said


async def test_a_password_and_a_database_that_the_server_refuses(own_server: OwnServer) -> None:
    hba = own_server.data / "pg_hba.conf"
    hba.write_text("local all guarded scram-sha-256\n" + hba.read_text())
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right horse'")
        connection.execute("SELECT pg_reload_conf()")
    guarded = own_server.url.replace("postgres:@", "guarded:wrong%20horse@", 1)
    assert guarded != own_server.url
    for said in await told(guarded):
        assert 'password authentication failed for user "guarded"' in said
        assert SECRET not in said
    for said in await told(own_server.url_of("nowhere")):
        assert 'database "nowhere" does not exist' in said


async def test_a_server_that_went_away_and_a_pool_that_is_used_up(own_server: OwnServer) -> None:
    url = own_server.url + "&pool_size=1"
    async with PostgresStore(url) as store:
        pool, _ = store.parts()
        async with pool.lent():
            with pytest.raises(StoreUnavailable, match="in 1 s: 1 in use"):
                await store.now()
        await own_server.stop(signal.SIGINT)
        with pytest.raises(StoreUnavailable, match=r"no connection to .* in 1 s: .*(refused|No such file)"):
            await store.now()
