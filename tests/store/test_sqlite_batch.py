"""SQLite's group commit: what arrives together is one transaction, and each write still has an outcome of its own."""

import asyncio
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from typing import Any

import anyio
import msgspec
import pytest

from events.ids import ChatId, WorkerId
from store import sqlite_batch
from store.contract import Append, Appended, Conflict, DuplicateCommand, Hint
from store.errors import StoreUnavailable, Unstorable
from store.sqlite import SqliteStore
from tests.store.contract_races import hint_at
from tests.store.making import CHAT, WORKER, appending, header, of

LONG = 60_000_000


@pytest.fixture
async def store(migrated_sqlite: str) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(f"{migrated_sqlite}&busy_timeout=0.05") as store:
        yield store


async def told(store: SqliteStore) -> list[str]:
    """Have the writing connection tell what it is told from now on."""
    statements = list[str]()
    await store._writer.run(lambda connection: connection.set_trace_callback(statements.append))
    return statements


async def all_of(calls: Iterable[Awaitable[Any]]) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


def creations(count: int, **changes: Any) -> list[Append]:
    return [appending(0, chat=ChatId(f"chat {n:03}"), **changes) for n in range(count)]


async def test_what_arrives_together_is_committed_once(store: SqliteStore) -> None:
    statements = await told(store)
    results = await all_of(
        [*(store.append(append) for append in creations(100)), store.heartbeat(WORKER, LONG, start=True)]
    )
    assert results[:100] == [Appended()] * 100
    assert results[100].renewed
    assert statements.count("COMMIT") == 1
    assert statements.count("BEGIN IMMEDIATE") == 1


async def test_each_of_a_batch_has_its_own_outcome(store: SqliteStore) -> None:
    await store.append(appending(0, "old", "old"))
    await store.append(appending(0, chat=ChatId("behind")))
    statements = await told(store)
    results = await all_of(
        store.append(append)
        for append in (
            appending(0, chat=ChatId("new")),
            appending(1, "old"),
            appending(2, "next"),
            appending(2, "too late"),
            appending(3, "and on"),
            appending(0, "x", chat=ChatId("behind")),
            appending(1, chat=ChatId("behind")),
        )
    )
    assert results == [
        Appended(), DuplicateCommand(1, b"print"), Appended(), Conflict(3), Appended(), Conflict(1), Appended(),
    ]  # fmt: skip
    assert statements.count("COMMIT") == 1
    log = await store.read_events(CHAT)
    assert [event.envelope.command for event in log] == ["old", "old", "next", "and on"]


async def test_headers_of_a_batch_are_read_by_one_call_whatever_the_chats_are_named(store: SqliteStore) -> None:
    chats = [ChatId(name) for name in ("a", "a\x00b", '"', "\x011", "7", "ü")]
    await all_of(store.append(appending(0, chat=chat)) for chat in chats)
    statements = await told(store)
    assert await all_of(store.append(appending(1, chat=chat)) for chat in chats) == [Appended()] * len(chats)
    reads = [statement for statement in statements if statement.startswith("SELECT chat, version")]
    assert "json_each" in reads[0]
    # Where a text with NUL does not come through SQLite's JSON, its chat is read by itself.
    assert len(reads) <= 2


async def test_headers_are_read_by_one_call_also_behind_what_is_no_append(store: SqliteStore) -> None:
    first, second = creations(40), [appending(1, chat=ChatId(f"chat {n:03}")) for n in range(40)]
    await all_of(store.append(append) for append in first)
    statements = await told(store)
    calls: list[Awaitable[Any]] = [store.heartbeat(WORKER, LONG, start=True)]
    calls += [store.append(append) for append in second[:20]]
    calls += [store.delete(ChatId("chat 020"), 1), *(store.append(append) for append in second[20:])]
    _, *results = await all_of(calls)
    assert results == [Appended()] * 20 + [True, Conflict(0)] + [Appended()] * 19
    assert statements.count("COMMIT") == 1
    reads = [statement for statement in statements if statement.startswith("SELECT chat, version")]
    # Two runs of appends; the chat that was deleted between them was not found, and was looked for by itself.
    assert [("json_each" in read, "chat 020" in read) for read in reads] == [(True, False), (True, True), (False, True)]


async def test_a_command_that_is_there_already_is_seen_before_it_is_written(store: SqliteStore) -> None:
    await store.append(appending(0, "old"))
    results = await all_of(
        store.append(append) for append in (appending(1, "fresh", "old", blobs={"d": b""}), *creations(3))
    )
    assert results == [DuplicateCommand(1, b"print"), Appended(), Appended(), Appended()]
    assert len(await store.read_events(CHAT)) == 1
    assert not await store.get_blobs(["d"])


@pytest.mark.parametrize("place", [0, 1, 6, 12])
async def test_what_raises_is_taken_out_alone(store: SqliteStore, place: int) -> None:
    appends = creations(13)
    appends[place] = msgspec.structs.replace(
        appends[place], header=msgspec.structs.replace(appends[place].header, title="\ud800")
    )
    results = await all_of(store.append(append) for append in appends)
    assert isinstance(results.pop(place), Unstorable)
    assert results == [Appended()] * 12
    assert await store.load_header(appends[place].chat) is None
    del appends[place]
    for append in appends:
        assert list(await store.read_events(append.chat)) == of(append)


async def set_pragma(store: SqliteStore, pragma: str) -> None:
    await store._writer.run(lambda connection: connection.execute(f"PRAGMA {pragma}").fetchall())


async def test_a_full_disk_refuses_and_is_got_over(store: SqliteStore) -> None:
    await store.append(appending(0, chat=ChatId("there")))
    await set_pragma(store, "max_page_count = 1")  # no page more than there are
    appends = creations(5, control=random.Random(1).randbytes(50_000))  # what cannot be packed
    results = await all_of(store.append(append) for append in appends)
    for error in results:
        assert isinstance(error, StoreUnavailable)
        assert str(error) == (
            f"{store._settings.path}: database or disk is full; nothing was written; free space on its disk, "
            "and writing goes on"
        )
    assert len(set(map(id, results))) == 5
    assert await store.list_ids() == ["there"]
    await set_pragma(store, "max_page_count = 100000")
    assert await all_of(store.append(append) for append in appends) == [Appended()] * 5


async def test_a_file_that_may_not_be_written_to(store: SqliteStore) -> None:
    await set_pragma(store, "query_only = ON")
    statements = await told(store)
    results = await all_of(
        [*(store.append(append) for append in creations(5)), store.heartbeat(WORKER, LONG, start=True)]
    )
    assert all("let this user write to the file and to its folder" in str(error) for error in results)
    assert statements.count("BEGIN IMMEDIATE") == 1, "tried once, not by halves"
    await set_pragma(store, "query_only = OFF")
    assert await store.append(appending(0)) == Appended()


async def test_a_lock_refuses_each(store: SqliteStore) -> None:
    blocker = sqlite3.connect(store._settings.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    results = await all_of(store.append(append) for append in creations(5))
    assert all(isinstance(error, StoreUnavailable) and "is locked" in str(error) for error in results)
    blocker.close()
    assert await all_of(store.append(append) for append in creations(5)) == [Appended()] * 5


async def test_nobody_overtakes(store: SqliteStore) -> None:
    done = list[str]()

    async def noting(name: str, call: Awaitable[Any]) -> None:
        await call
        done.append(name)

    calls = [noting(append.chat, store.append(append)) for append in creations(600)]
    calls.insert(300, noting("beat", store.heartbeat(WORKER, LONG, start=True)))
    await asyncio.gather(*calls)
    assert done.index("beat") == 300


async def test_a_batch_is_told_once(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    published = list[Sequence[Hint]]()
    really = store._bus.publish

    def publish(hints: Iterable[Hint]) -> None:
        published.append(tuple(hints))
        really(published[-1])

    async with store.hints() as hints:
        monkeypatch.setattr(store._bus, "publish", publish)
        await all_of(store.append(append) for append in [*creations(20), appending(3)])
        assert [hint.chat for hint in published[0]] == [append.chat for append in creations(20)]
        assert (await hint_at(hints, ChatId("chat 019"), 1)).version == 1


async def test_every_plain_column_is_written_where_no_indexed_one_changed(store: SqliteStore) -> None:
    await store.append(appending(0, listed_at=5))
    changed = header(
        2, listed_at=5, interrupting=True, archived=True, queued=3, history_version=7, queue_version=8, epoch=9,
        due_at=2**63 - 1, created_at=-1, control=bytes(range(256)), digest=b"\x00", title="title", labels={"k": "v"},
        pinned=True, foreign=True, reader_level=7, agent="other", attempt=4,
    )  # fmt: skip
    statements = await told(store)
    await store.append(msgspec.structs.replace(appending(1), header=changed))
    assert any(statement.startswith("UPDATE chats SET agent") for statement in statements)
    loaded = await store.load_header(CHAT)
    assert loaded is not None
    assert loaded.header == changed


@pytest.mark.parametrize(
    "changes", [{"owner": "o"}, {"parent": "p"}, {"status": "error"}, {"holder": WorkerId("w")}, {"listed_at": 9}]
)
async def test_an_indexed_column_is_written_where_it_changed(store: SqliteStore, changes: dict[str, Any]) -> None:
    await store.append(appending(0, listed_at=5))
    made = appending(1, **({"listed_at": 5} | changes))
    await store.append(made)
    loaded = await store.load_header(CHAT)
    assert loaded is not None
    assert loaded.header == made.header


async def test_a_step_touches_no_index_of_headers(store: SqliteStore) -> None:
    def opened(connection: sqlite3.Connection) -> list[str]:
        values = (None,) * (sqlite_batch.UPDATE_PLAIN.count("?"))
        return [row[1] for row in connection.execute(f"EXPLAIN {sqlite_batch.UPDATE_PLAIN}", values)]

    assert not {"IdxInsert", "IdxDelete"} & set(await store._reader.run(opened))


async def test_another_loop_may_use_the_store(store: SqliteStore) -> None:
    async def elsewhere() -> list[Any]:
        return await all_of(store.append(append) for append in [*creations(3), appending(7, chat=ChatId("chat 000"))])

    with anyio.fail_after(10):
        results = await asyncio.to_thread(asyncio.run, elsewhere())
    assert results == [Appended(), Appended(), Appended(), Conflict(1)]
    assert len(await store.list_ids()) == 3


async def test_a_loop_that_is_gone_holds_up_nobody(store: SqliteStore) -> None:
    async def leave() -> None:
        asyncio.ensure_future(store.append(appending(0))).add_done_callback(lambda task: task.cancelled())
        await asyncio.sleep(0)
        asyncio.get_running_loop().stop()

    loop = asyncio.new_event_loop()
    async with store.hints() as hints:
        task = loop.create_task(leave())
        await asyncio.to_thread(loop.run_forever)
        assert (await hint_at(hints, CHAT, 1)).version == 1
        assert await store.append(appending(1)) == Appended()
    await asyncio.to_thread(loop.run_until_complete, asyncio.wait(asyncio.all_tasks(loop)))
    assert task.done()
    loop.close()
