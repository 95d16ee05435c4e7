"""What only the PostgreSQL back end has: connections that are lost, round trips, hints that come again."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import psycopg
import pytest

from events.ids import ChatId, CommandId
from store import postgres, postgres_calls, postgres_pool
from store.contract import Appended, AppendResult, CommandRecord, DuplicateCommand, Hint
from store.errors import OutcomeUnknown, StoreUnavailable, Unstorable
from store.postgres import PostgresStore
from store.postgres_hints import hints_of, payloads
from store.postgres_line import Line, Row
from tests.store.contract_races import hint_at
from tests.store.contract_workers import until
from tests.store.making import CHAT, WORKER, appending


@asynccontextmanager
async def watcher(url: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
    """A connection beside the store's, to look and to interfere."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, application_name="watcher") as connection:
        yield connection


async def terminate(watch: psycopg.AsyncConnection[tuple[Any, ...]], where: str) -> int:
    """End the store's server processes that match; returns how many."""
    found = await (
        await watch.execute(
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
            f"WHERE datname = current_database() AND application_name = 'chatfold' AND {where}".encode()
        )
    ).fetchone()
    assert found is not None
    return int(found[0])


async def blocked(watch: psycopg.AsyncConnection[tuple[Any, ...]]) -> bool:
    """Return whether a statement of the store waits for a lock."""
    row = await (
        await watch.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'chatfold'"
        )
    ).fetchone()
    return row is not None and row[0] > 0


async def test_a_connection_lost_while_an_append_waits(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        await store.append(appending(0))
        async with watch.transaction():
            await watch.execute("SELECT 1 FROM chats FOR UPDATE")
            append = asyncio.create_task(store.append(appending(1, "lost")))
            async with watcher(migrated_database) as second:

                async def ended() -> bool:
                    return await terminate(second, "wait_event_type = 'Lock'") == 1

                await until(ended)
            with pytest.raises(OutcomeUnknown):
                await append
        assert await store.find_command(CHAT, CommandId("lost")) is None
        assert await store.append(appending(1, "lost")) == Appended()


async def asked_until_told(store: PostgresStore, command: str) -> CommandRecord | None:
    """Find a command, again where a read and its second try were both cut off: reads change nothing."""
    while True:
        try:
            return await store.find_command(CHAT, CommandId(command))
        except StoreUnavailable:
            await asyncio.sleep(0)


async def test_every_outcome_is_found_in_the_log(migrated_database: str) -> None:
    """Server processes are ended all the time; an append says success or unknown, and the log knows the truth."""
    unknown = written = version = 0
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        ended = asyncio.Event()

        async def interfere() -> None:
            while not ended.is_set():
                await terminate(watch, "query LIKE '%chat_events%'")
                await asyncio.sleep(0.002)

        task = asyncio.create_task(interfere())
        for n in range(150):
            command = f"command {n}"
            try:
                result: AppendResult | None = await store.append(appending(version, command))
            except OutcomeUnknown:
                unknown, result = unknown + 1, None
            except StoreUnavailable:
                continue
            found = await asked_until_told(store, command)
            assert (found is not None) if result == Appended() else result is None
            if found is not None:
                written, version = written + 1, found.last
        ended.set()
        await task
        assert len(await store.read_events(CHAT)) == version == written > 0
        print(f"{written} written, {unknown} outcomes unknown")


async def test_connections_that_died_idle_are_not_used(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        for version in range(5):
            assert await store.append(appending(version)) == Appended()
            assert await terminate(watch, "true") >= 1
        assert await store.load_header(CHAT) is not None


async def test_a_read_is_repeated_once(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        await store.append(appending(0))
        async with watch.transaction():
            await watch.execute("LOCK TABLE chats IN ACCESS EXCLUSIVE MODE")
            read = asyncio.create_task(store.load_header(CHAT))
            async with watcher(migrated_database) as second:
                await until(lambda: blocked(second))
                await terminate(second, "wait_event_type = 'Lock'")
                await until(lambda: blocked(second))
        loaded = await read
        assert loaded is not None


async def test_a_read_is_not_repeated_for_ever(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        async with watch.transaction():
            await watch.execute("LOCK TABLE chats IN ACCESS EXCLUSIVE MODE")
            read = asyncio.create_task(store.load_header(CHAT))
            async with watcher(migrated_database) as second:
                while not read.done():
                    await terminate(second, "wait_event_type = 'Lock'")
        with pytest.raises(StoreUnavailable):
            await read
        assert await store.load_header(CHAT) is None


async def test_hints_come_again_after_the_listener_was_lost(migrated_database: str) -> None:
    async with (
        PostgresStore(migrated_database) as store,
        PostgresStore(migrated_database) as other,
        other.hints() as hints,
        watcher(migrated_database) as watch,
    ):
        await store.append(appending(0))
        assert (await hint_at(hints, CHAT, 1)).version == 1
        assert await terminate(watch, "query LIKE 'LISTEN%'") == 1
        version = 1

        async def heard() -> bool:
            nonlocal version
            await store.append(appending(version))
            version += 1
            with anyio.move_on_after(0.05):
                return (await hint_at(hints, CHAT, 2)).version >= 2
            return False

        await until(heard)


async def test_hints_go_out_again_after_the_teller_was_lost(migrated_database: str) -> None:
    async with (
        PostgresStore(migrated_database) as store,
        PostgresStore(migrated_database) as other,
        other.hints() as hints,
        watcher(migrated_database) as watch,
    ):
        await store.append(appending(0))
        assert (await hint_at(hints, CHAT, 1)).version == 1
        assert await terminate(watch, "query LIKE '%pg_notify%'") == 1
        await store.append(appending(1))
        assert (await hint_at(hints, CHAT, 2)).version == 2


async def test_hints_go_out_before_a_store_is_closed(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as other, other.hints() as hints:
        async with PostgresStore(migrated_database) as store:
            await store.append(appending(0))
        assert (await hint_at(hints, CHAT, 1)).version == 1


async def test_closing_waits_for_appends_under_way(migrated_database: str) -> None:
    store = PostgresStore(migrated_database)
    async with store:
        appends = [asyncio.create_task(store.append(appending(0, chat=ChatId(str(n))))) for n in range(20)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*appends) == [Appended()] * 20


async def test_an_append_is_one_round_trip(migrated_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    fetch, run = postgres_calls.fetch, Line.run

    async def counting(connection: postgres_pool.Connection, statement: str, values: Any) -> list[tuple[Any, ...]]:
        statements.append(statement)
        return await fetch(connection, statement, values)

    async def counting_too(line: Line, statement: str, values: Any) -> list[Row]:
        statements.append(statement)
        return await run(line, statement, values)

    async with PostgresStore(migrated_database) as store:
        monkeypatch.setattr(postgres, "fetch", counting)
        monkeypatch.setattr(Line, "run", counting_too)
        for append in (
            appending(0, "a", "b"),
            appending(2, "c", blobs={"d": b"1"}, erased={1: b""}),
            appending(3, *"defghijk"),
            appending(11, "a"),
            appending(1, "x"),
            appending(0, "x"),
        ):
            statements.clear()
            await store.append(append)
            assert len(statements) == 1


async def test_what_an_old_snapshot_does_not_show_is_looked_up(migrated_database: str) -> None:
    """Two appends wait for one lock: the second was sent before the first was committed, and is told the truth."""
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        await store.append(appending(0))
        async with watch.transaction():
            await watch.execute("SELECT 1 FROM chats FOR UPDATE")
            appends = [asyncio.create_task(store.append(appending(1, "same"))) for _ in range(2)]
            async with watcher(migrated_database) as second:

                async def both() -> bool:
                    row = await (
                        await second.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
                    ).fetchone()
                    return row == (2,)

                await until(both)
        assert sorted(map(repr, await asyncio.gather(*appends))) == [
            repr(Appended()),
            repr(DuplicateCommand(2, b"print")),
        ]


async def test_due_chats_that_are_written_to_are_passed_over(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        for name in ("a", "b"):
            await store.append(appending(0, chat=ChatId(name), status="pending"))
        async with watch.transaction():
            await watch.execute("SELECT 1 FROM chats WHERE chat = 'a' FOR UPDATE")
            with anyio.fail_after(5):
                due = await store.find_due(agents=["agent"], reader_level=1, limit=10)
        assert [chat.chat for chat in due] == ["b"]


async def test_what_cannot_be_stored_is_refused(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        for values in ({"title": "\ud800"}, {"epoch": 2**63}):
            with pytest.raises(Unstorable):
                await store.append(appending(0, **values))
        assert await store.load_header(CHAT) is None
        assert await store.append(appending(0)) == Appended()


async def test_a_lease_renewed_too_late_does_not_live_on(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with PostgresStore(migrated_database) as store:
        await store.append(appending(0, status="running", holder=WORKER))
        assert (await store.heartbeat(WORKER, 60_000_000, start=True)).renewed
        moments = iter([0])
        monkeypatch.setattr(time, "monotonic_ns", lambda: next(moments, 61_000_000_000))
        assert not (await store.heartbeat(WORKER, 60_000_000)).renewed
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert not loaded.holder_alive


async def test_the_feed_is_in_order(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        await store.append(appending(0, *"abcdefgh"))
        await store.append(appending(8, "x", "y"))
        rows = await (await watch.execute("SELECT version FROM chat_events ORDER BY tx, position")).fetchall()
        assert [row[0] for row in rows] == list(range(1, 11))


async def test_a_small_pool_serves_many(migrated_database: str) -> None:
    joint = "&" if "?" in migrated_database else "?"
    async with PostgresStore(f"{migrated_database}{joint}pool_size=1") as store:
        results = await asyncio.gather(*(store.append(appending(0, chat=ChatId(str(n)))) for n in range(30)))
        assert results == [Appended()] * 30


def test_hints_are_packed_within_the_limit() -> None:
    hints = [Hint(ChatId(f"chat \x00 é {n} {'x' * (n % 300)}"), n, n % 2 == 0) for n in range(2000)]
    packed = list(payloads(hints))
    assert len(packed) > 1
    assert all(len(payload.encode()) < 8000 for payload in packed)
    assert [hint for payload in packed for hint in hints_of(payload)] == hints
    assert list(payloads([Hint(ChatId("x" * 9000), 1, due=True)])) == []
    assert hints_of("{not ours") == []
    assert hints_of('{"not": "ours"}') == []


async def test_a_heartbeat_does_not_stand_in_line_behind_reads(migrated_database: str) -> None:
    url = f"{migrated_database}{'&' if '?' in migrated_database else '?'}pool_size=1"
    async with PostgresStore(url) as store, watcher(migrated_database) as watch:
        await watch.execute("SELECT pg_advisory_lock(1)")
        reads = [asyncio.create_task(store.read("SELECT pg_advisory_xact_lock_shared(1)", {})) for _ in range(3)]
        await until(lambda: blocked(watch))
        async with asyncio.timeout(5):
            assert (await store.heartbeat(WORKER, 1_000_000, start=True)).renewed
            assert (await store.heartbeat(WORKER, 1_000_000)).renewed
        assert not any(read.done() for read in reads)
        await watch.execute("SELECT pg_advisory_unlock(1)")
        await asyncio.gather(*reads)
