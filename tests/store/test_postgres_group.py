"""Appends of many chats in one statement: each gets its own outcome, whatever becomes of the others."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import anyio
import msgspec
import psycopg
import pytest

from events.ids import ChatId, CommandId
from store import postgres
from store.contract import Append, Appended, AppendResult, Conflict, DuplicateCommand, PartialChunk, Store
from store.errors import OutcomeUnknown, StoreError, Unstorable
from store.postgres import PostgresStore
from store.postgres_group import Outcome
from store.postgres_line import Line, numbered
from tests.store.contract_workers import until
from tests.store.making import appending, of
from tests.store.test_postgres import blocked, terminate, watcher


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The chats of each statement that went over a line."""
    seen: list[list[str]] = []
    over_the_line = postgres._over_the_line

    async def watching(line: Line, batch: Sequence[Append]) -> list[Outcome]:
        seen.append([append.chat for append in batch])
        return await over_the_line(line, batch)

    monkeypatch.setattr(postgres, "_over_the_line", watching)
    return seen


async def made(store: Store, count: int) -> list[ChatId]:
    names = [ChatId(f"chat {n}") for n in range(count)]
    for name in names:
        assert await store.append(appending(0, "new", chat=name)) == Appended()
    return names


async def at_once(store: Store, appends: Sequence[Append]) -> list[AppendResult | BaseException]:
    return await asyncio.gather(*(store.append(append) for append in appends), return_exceptions=True)


async def test_a_batch_writes_what_each_append_says(migrated_database: str, batches: list[list[str]]) -> None:
    async with (
        PostgresStore(migrated_database) as store,
        PostgresStore(migrated_database) as other,
        other.hints() as hints,
    ):
        names = await made(store, 30)
        appends = [appending(1, *"abbcd"[: 1 + n % 5], chat=name, title=name) for n, name in enumerate(names)]
        appends.reverse()
        batches.clear()
        assert await at_once(store, appends) == [Appended()] * 30
        assert sorted(map(len, batches)) == [30]
        for append in appends:
            loaded = await store.load_header(append.chat)
            assert loaded is not None
            assert loaded.header == append.header
            assert list(await store.read_events(append.chat, after=1)) == of(append)
        heard: dict[str, int] = {}
        with anyio.fail_after(10):
            while heard != {append.chat: append.header.version for append in appends}:
                hint = await anext(hints)
                heard[hint.chat] = hint.version


async def test_conflicts_and_repeated_commands_are_told_to_their_own(
    migrated_database: str, batches: list[list[str]]
) -> None:
    async with PostgresStore(migrated_database) as store:
        names = await made(store, 6)
        await store.append(appending(1, "second", chat=names[1]))
        batches.clear()
        appends = [
            appending(1, "x", chat=names[0]),
            appending(1, "x", chat=names[1]),  # it is at 2
            appending(2, "y", "new", chat=names[1]),  # later, by itself: its chat is in the batch already
            appending(1, "new", chat=names[2]),  # repeated
            appending(7, "new", chat=names[3]),  # repeated, and at another version
            appending(1, "x", chat=ChatId("nobody")),
            appending(1, "x", chat=names[4]),
        ]
        assert await at_once(store, appends) == [
            Appended(),
            Conflict(2),
            DuplicateCommand(1, b"print"),
            DuplicateCommand(1, b"print"),
            DuplicateCommand(1, b"print"),
            Conflict(0),
            Appended(),
        ]
        assert len(batches[0]) == 6
        assert await store.read_events(names[2], after=1) == []


async def test_a_poisoned_append_spoils_no_other(migrated_database: str, batches: list[list[str]]) -> None:
    async with PostgresStore(migrated_database) as store:
        names = await made(store, 8)
        appends = [appending(1, chat=name) for name in names]
        appends[2] = appending(1, chat=names[2], title="\ud800")
        appends[5] = appending(1, chat=names[5], epoch=2**63)
        appends[6] = appending(1, random.Random(1).randbytes(9000).hex(), chat=names[6])  # more than an index takes
        results = await at_once(store, appends)
        assert [type(result) for result in results[:6]] == [
            Appended,
            Appended,
            Unstorable,
            Appended,
            Appended,
            Unstorable,
        ]
        assert isinstance(results[6], StoreError)
        assert results[7] == Appended()
        assert await at_once(store, [appending(1, chat=names[n]) for n in (2, 5, 6)]) == [Appended()] * 3


async def test_a_locked_header_holds_up_its_own_chat_alone(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        names = await made(store, 20)
        async with watch.transaction():
            await watch.execute("SELECT 1 FROM chats WHERE chat = 'chat 7' FOR UPDATE")
            tasks = {name: asyncio.create_task(store.append(appending(1, chat=name))) for name in names}
            locked = tasks.pop(names[7])
            with anyio.fail_after(5):
                assert await asyncio.gather(*tasks.values()) == [Appended()] * 19
                for version in range(2, 12):  # alone, one after the other
                    assert await store.append(appending(version, chat=names[0])) == Appended()
            assert not locked.done()
        assert await locked == Appended()


async def test_a_lone_append_behind_a_lock_holds_up_no_other(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        first, second = await made(store, 2)
        async with watch.transaction():
            await watch.execute("SELECT 1 FROM chats WHERE chat = 'chat 0' FOR UPDATE")
            locked = asyncio.create_task(store.append(appending(1, chat=first)))
            await asyncio.sleep(0)
            with anyio.fail_after(5):
                assert await store.append(appending(1, chat=second)) == Appended()
            assert not locked.done()
        assert await locked == Appended()


async def test_a_lock_that_is_never_let_go_ends_in_an_error(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.postgres_pool.PATIENCE", 0.2)
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        (name,) = await made(store, 1)
        async with watch.transaction():
            await watch.execute("SELECT 1 FROM chats FOR UPDATE")
            with anyio.fail_after(10), pytest.raises(StoreError, match="lock timeout"):
                await store.append(appending(1, chat=name))
        assert await store.append(appending(1, chat=name)) == Appended()


async def test_a_batch_whose_connection_is_lost_has_unknown_outcomes(
    migrated_database: str, batches: list[list[str]]
) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        names = await made(store, 5)
        pool, _ = store.parts()
        line = await pool.line()
        await line.run("SET lock_timeout = '1min'", [])
        async with watch.transaction():
            # The chats can be locked, and nothing can be written: the batch is stopped half-way.
            await watch.execute("LOCK TABLE chat_events IN SHARE MODE")
            task = asyncio.create_task(at_once(store, [appending(1, "lost", chat=name) for name in names]))
            async with watcher(migrated_database) as second:

                async def ended() -> bool:
                    return await terminate(second, "wait_event_type = 'Lock'") == 1

                await until(ended)
            results = await task
        assert [type(result) for result in results] == [OutcomeUnknown] * 5
        assert [len(batch) for batch in batches if len(batch) > 1] == [5]
        for name in names:
            assert await store.find_command(name, CommandId("lost")) is None
        assert await at_once(store, [appending(1, "lost", chat=name) for name in names]) == [Appended()] * 5


async def test_cancelled_callers_wait_for_the_outcome_of_their_batch(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        names = await made(store, 12)
        tasks = [asyncio.create_task(store.append(appending(1, chat=name))) for name in names]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [True, False] * 6
        for name in names:
            assert len(await store.read_events(name)) == 2


async def test_two_stores_write_the_same_chats_at_once(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store, PostgresStore(migrated_database) as other:
        names = await made(store, 12)
        for version in range(1, 6):
            appends = [appending(version, f"same {version}", chat=name) for name in names]
            results, others = await asyncio.gather(at_once(store, appends), at_once(other, appends[::-1]))
            for one, two in zip(results, others[::-1], strict=True):
                assert {repr(one), repr(two)} == {repr(Appended()), repr(DuplicateCommand(version + 1, b"print"))}


async def test_the_append_that_ends_an_attempt_drops_its_pieces(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        names = await made(store, 3)
        await at_once(store, [appending(1, chat=name, attempt=1, history_version=1) for name in names])
        pieces = [PartialChunk(chat=name, epoch=0, history_version=1, attempt=1, n=0, data=b"d") for name in names]
        await store.write_partials(pieces)
        ending = [msgspec.structs.replace(appending(2, chat=name), drop_partials=name != names[1]) for name in names]
        assert await at_once(store, ending) == [Appended()] * 3
        assert [len(await store.read_partials(name)) for name in names] == [0, 1, 0]


@pytest.mark.parametrize("together", [1, 3])
async def test_a_piece_that_is_being_written_does_not_outlive_its_attempt(
    migrated_database: str, together: int
) -> None:
    async with PostgresStore(migrated_database) as store, watcher(migrated_database) as watch:
        names = await made(store, together)
        async with watch.transaction():
            await watch.execute("SELECT 1 FROM chats WHERE chat = 'chat 0' FOR SHARE")
            ending = [msgspec.structs.replace(appending(1, chat=name), drop_partials=True) for name in names]
            task = asyncio.create_task(at_once(store, ending))
            async with watcher(migrated_database) as second:

                async def waits() -> bool:
                    return await blocked(second)

                await until(waits)
            await watch.execute("INSERT INTO chat_partials VALUES ('chat 0', 1, 1, 0, 'late')")
        assert await task == [Appended()] * together
        assert list(await store.read_partials(names[0])) == []


async def test_a_line_tells_errors_and_goes_on(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        pool, _ = store.parts()
        line = await pool.line()
        assert await line.run("SELECT %(a)b::text || %(b)b, %(a)b::text", [b"x", b"y"]) == [[b"xy", b"x"]]
        for _ in range(2):
            with pytest.raises(psycopg.errors.DivisionByZero):
                await line.run("SELECT 1 / (%(a)b::text = '')::int", [b"x"])
        with pytest.raises(psycopg.errors.UndefinedTable):
            await line.run("SELECT * FROM nothing", [])
        big = b"z" * 5_000_000
        assert await line.run("SELECT %(a)b::bytea", [big]) == [[big]]
        assert line.is_alive()
        assert await pool.line() is line


async def test_a_wait_that_is_cut_off_ends_the_line(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        pool, _ = store.parts()
        line = await pool.line()
        waiting = asyncio.create_task(line.run("SELECT pg_sleep(60)", []))

        async def asked() -> bool:
            return line._waiter is not None

        await until(asked)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not line.is_alive()
        assert await (await pool.line()).run("SELECT 'b'::text", []) == [[b"b"]]


def test_names_become_numbers() -> None:
    statement: Any = "SELECT %(b)s::text, %(a)b::bigint, %(b)b LIKE '%%'"
    assert numbered(statement) == (b"SELECT $1::text, $2::bigint, $1 LIKE '%'", ("b", "a"))
