"""PostgreSQL fails while a model is being called: nothing is lost, and nobody has to do anything."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg import sql

from store.errors import StoreUnavailable
from tests.faults.kit import LEASE, Effort, check, in_a_call
from tests.faults.servers import OwnServer


@asynccontextmanager
async def operator(url: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[int]]]:
    """Connect as somebody who does things to the database."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        yield connection


TERMINATE = (
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
)


async def test_all_connections_are_ended_again_and_again(postgres_database: Callable[[], str]) -> None:
    url = postgres_database()
    async with in_a_call(url) as scene, operator(url) as connection:
        ended = 0
        for _ in range(5):
            row = await (await connection.execute(TERMINATE, (connection.info.backend_pid,))).fetchone()
            ended += row[0] if row is not None else 0
            await asyncio.sleep(LEASE / 3)  # a heartbeat of the engine, which is another process's for this matter
        assert ended >= 10
        await check(scene)


async def test_an_answer_that_comes_as_connections_end_is_kept(postgres_database: Callable[[], str]) -> None:
    url = postgres_database()
    async with in_a_call(url) as scene, operator(url) as connection:
        scene.call.answer.set()
        for _ in range(10):
            await connection.execute(TERMINATE, (connection.info.backend_pid,))
            await asyncio.sleep(0)
        await check(scene)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restart", "crash"])
async def test_the_database_restarts(own_server: OwnServer, how: signal.Signals) -> None:
    async with in_a_call(own_server.url) as scene:
        await own_server.stop(how)
        effort = Effort()
        scene.call.answer.set()  # while the database is away
        await asyncio.sleep(1.5 * LEASE)  # the lease ends meanwhile: whatever ran must be taken up again
        effort.assert_small()
        await own_server.start()
        await check(scene)


async def test_a_database_that_only_reads(postgres_database: Callable[[], str], postgres_url: str) -> None:
    url = postgres_database()
    name = sql.Identifier(str(psycopg.conninfo.conninfo_to_dict(url)["dbname"]))
    async with in_a_call(url) as scene, operator(url) as connection, operator(postgres_url) as server:
        only_reads = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
        await server.execute(only_reads.format(name, sql.SQL("on")))
        await connection.execute(TERMINATE, (connection.info.backend_pid,))  # new sessions take the setting
        effort = Effort()
        with pytest.raises(StoreUnavailable, match="read-only"):
            await scene.engine.create_chat("helper", "Hello")
        scene.call.answer.set()
        await asyncio.sleep(1.5 * LEASE)
        effort.assert_small()
        assert (await scene.engine.state(scene.chat)).control.status == "running"
        await server.execute(only_reads.format(name, sql.SQL("off")))
        await connection.execute(TERMINATE, (connection.info.backend_pid,))
        await check(scene)
