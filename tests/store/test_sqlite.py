"""What only the SQLite back end has: threads, settings, other processes on the file, a lease renewed too late."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import pytest

from events.ids import ChatId
from store import sqlite_sql
from store.contract import Appended, Conflict, Hint
from store.errors import StoreUnavailable, Unstorable
from store.notify import Bus
from store.sqlite import SqliteStore
from store.urls import parse_sqlite
from tests.store.contract_races import hint_at
from tests.store.contract_workers import LONG, alive
from tests.store.making import CHAT, WORKER, appending

ROOT = Path(__file__).parents[2]

OTHER_PROCESS = """
import asyncio, sys
from store import open_store
from store.contract import Appended, Conflict
from tests.store.making import CHAT, appending

async def main():
    async with open_store(sys.argv[1]) as store, store.hints() as hints:
        print("ready", flush=True)
        async for hint in hints:
            if hint.chat == CHAT:
                break
        print("heard", hint.version, flush=True)
        won, version = 0, 0
        while version < 40:
            result = await store.append(appending(version, f"other {version}", chat="shared"))
            won += result == Appended()
            version = version + 1 if result == Appended() else result.version
        print("won", won, flush=True)
        sys.stdin.readline()
        await store.append(appending(1, "answer"))
        print("said", flush=True)

asyncio.run(main())
"""


def path_of(url: str) -> Path:
    return Path(url.partition("?")[0].removeprefix("sqlite:///"))


async def said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    with anyio.fail_after(30):
        return (await process.stdout.readline()).decode().strip()


async def test_two_processes_share_a_file(migrated_sqlite: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_PROCESS, migrated_sqlite, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    async with SqliteStore(migrated_sqlite) as store, store.hints() as hints:
        assert await said(process) == "ready"
        await store.append(appending(0))
        assert await said(process) == "heard 1"
        won, version = 0, 0
        while version < 40:
            result = await store.append(appending(version, f"mine {version}", chat=ChatId("shared")))
            if result == Appended():
                won, version = won + 1, version + 1
            else:
                assert isinstance(result, Conflict)
                version = result.version
        theirs = int((await said(process)).removeprefix("won "))
        assert won + theirs == 40
        assert len(await store.read_events(ChatId("shared"))) == 40
        assert await hint_at(hints, ChatId("shared"), 40) == Hint(ChatId("shared"), 40, due=False)
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        assert await said(process) == "said"
        assert await hint_at(hints, CHAT, 2) == Hint(CHAT, 2, due=False)
        assert await process.wait() == 0


async def test_one_thread_writes_and_one_reads(migrated_sqlite: str) -> None:
    before = set(threading.enumerate())
    async with SqliteStore(migrated_sqlite) as store:
        await asyncio.gather(*(store.append(appending(0, chat=ChatId(str(n)))) for n in range(20)))
        await asyncio.gather(*(store.load_header(ChatId(str(n))) for n in range(20)))
        started = {thread.name for thread in set(threading.enumerate()) - before}
        assert started == {"chatfold-write", "chatfold-read"}
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize(("setting", "level"), [("", 2), ("?synchronous=full", 2), ("?synchronous=NORMAL", 1)])
async def test_the_settings_reach_sqlite(migrated_sqlite: str, setting: str, level: int) -> None:
    async with SqliteStore(f"sqlite:///{path_of(migrated_sqlite)}{setting}") as store:
        writer, reader = store._require_open()
        for lane in (writer, reader):
            assert await lane.run(lambda connection: connection.execute("PRAGMA synchronous").fetchone()) == (level,)
            assert await lane.run(lambda connection: connection.execute("PRAGMA journal_mode").fetchone()) == ("wal",)


async def test_a_file_that_is_locked_for_too_long(migrated_sqlite: str) -> None:
    async with SqliteStore(f"{migrated_sqlite}&busy_timeout=0.05") as store:
        blocker = sqlite3.connect(path_of(migrated_sqlite), isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            await store.append(appending(0))
        assert await store.load_header(CHAT) is None  # reading goes on
        blocker.execute("ROLLBACK")
        blocker.close()
        assert await store.append(appending(0)) == Appended()


async def test_an_append_that_fails_half_way_writes_nothing(migrated_sqlite: str) -> None:
    async with SqliteStore(migrated_sqlite) as store:
        for values in ({"title": "\ud800"}, {"epoch": 2**63}):
            with pytest.raises(Unstorable):
                await store.append(appending(0, **values))
        with pytest.raises(Unstorable):
            await store.append(appending(0, "good", "b\ud800d", blobs={"d": b"1"}))
        assert await store.load_header(CHAT) is None
        assert not await store.read_events(CHAT)
        assert not await store.get_blobs(["d"])
        assert await store.append(appending(0)) == Appended()


async def test_a_lease_renewed_too_late_does_not_live_on(migrated_sqlite: str) -> None:
    times = [1000, 1000, 1090, 1120]  # start: before and after; renewal: before the end of the lease, and after it
    async with SqliteStore(migrated_sqlite, clock=lambda: times.pop(0) if len(times) > 1 else times[0]) as store:
        assert (await store.heartbeat(WORKER, 100, start=True)).renewed
        late = await store.heartbeat(WORKER, 1000)
        assert (late.now, late.renewed) == (1120, False)
        await store.append(appending(0, status="running", holder=WORKER))
        assert not await alive(store)


async def test_leases_of_long_ago_are_cleared_away(migrated_sqlite: str) -> None:
    now = [1_000_000]
    async with SqliteStore(migrated_sqlite, clock=lambda: now[0]) as store:
        await store.heartbeat(WORKER, 10, start=True)
        now[0] += 8 * 24 * 3600 * 1_000_000
        await store.heartbeat("next", LONG, start=True)  # type: ignore[arg-type]  # any id will do
        writer, _ = store._require_open()
        assert await writer.run(lambda c: c.execute("SELECT worker FROM workers").fetchall()) == [("next",)]


async def test_positions_are_never_used_again(migrated_sqlite: str) -> None:
    async with SqliteStore(migrated_sqlite) as store:
        await store.append(appending(0, "a", "b", "c"))
        await store.delete(CHAT, 3)
        await store.append(appending(0, chat=ChatId("next")))
        writer, _ = store._require_open()
        rows = await writer.run(lambda c: c.execute("SELECT tx, position FROM chat_events").fetchall())
        assert rows == [(5, 5)]  # the deletion took one


async def test_polling_goes_on_after_an_error(migrated_sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = 3
    really = sqlite_sql.data_version

    def failing(connection: sqlite3.Connection) -> int:
        nonlocal failures
        if failures:
            failures -= 1
            raise sqlite3.OperationalError("database is locked")
        return really(connection)

    async with SqliteStore(migrated_sqlite) as store, store.hints() as hints:
        async with SqliteStore(migrated_sqlite) as other:
            monkeypatch.setattr(sqlite_sql, "data_version", failing)
            other._writer._bus = Bus()  # as if it were of another process
            await other.append(appending(0))
        assert (await hint_at(hints, CHAT, 1)).version == 1
        assert failures == 0


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
async def test_a_file_that_is_gone_takes_no_writes(migrated_sqlite: str, replaced: bool) -> None:
    path = parse_sqlite(migrated_sqlite).path
    async with SqliteStore(migrated_sqlite) as store:
        await store.append(appending(0))
        await store.heartbeat(WORKER, LONG, start=True)
        await anyio.Path(path).rename(path.with_name("moved"))
        if replaced:
            await anyio.Path(path).write_bytes(b"")
        with pytest.raises(StoreUnavailable, match="deleted or replaced"):
            await store.append(appending(1))
        with pytest.raises(StoreUnavailable, match="deleted or replaced"):
            await store.heartbeat(WORKER, LONG)
