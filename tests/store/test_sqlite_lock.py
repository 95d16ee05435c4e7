"""Another process's lock on the file is told while it lasts, and named where it lasts too long."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import store.sqlite_lane
from events.ids import WorkerId
from store.errors import StoreUnavailable
from store.migrate import migrate
from store.sqlite import SqliteStore
from store.sqlite_lock import is_locked, tell_locked

LEASE = 1_000_000


@contextmanager
def locking(path: Path) -> Iterator[None]:
    """Hold the file's write lock, as another process would."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.close()


def told(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.message == "database_locked"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    migrate(f"sqlite:///{tmp_path / 'a b.db'}")
    return tmp_path / "a b.db"


async def test_what_is_waited_for_is_told_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard = asyncio.Event()

    def tell(file: Path) -> None:
        tell_locked(file)
        heard.set()

    monkeypatch.setattr(store.sqlite_lane, "PATIENCE", 0.0)
    monkeypatch.setattr(store.sqlite_lane, "tell_locked", tell)
    async with SqliteStore(f"sqlite:///{path}") as opened:
        with locking(path):
            beats = [asyncio.ensure_future(opened.heartbeat(WorkerId(name), LEASE, start=True)) for name in "ab"]
            await heard.wait()
            await opened.find_due(agents=["x"], reader_level=1, limit=1)  # reading goes on
        await asyncio.gather(*beats)
    (record,) = told(caplog)
    assert record.levelname == "WARNING"
    assert (vars(record)["file"], vars(record)["look"]) == (str(path), f"fuser -v '{path}'")


async def test_work_of_our_own_is_no_lock(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    begun, looked = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work(connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        loop.call_soon_threadsafe(begun.set)
        looked.wait(10)
        connection.rollback()

    async with SqliteStore(f"sqlite:///{path}") as opened:
        working = asyncio.ensure_future(opened._writer.run(work))
        await begun.wait()
        assert is_locked(path, "BEGIN IMMEDIATE")
        opened._writer._look_for_lock()
        looked.set()
        await working
    assert not told(caplog)


async def test_a_lock_that_is_gone_at_the_next_look_is_not_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As after an import that the loop was busy with: the work was done long ago, and its lock was seen going."""
    looks, enough = list[bool](), asyncio.Event()

    def look(file: Path, statement: str) -> bool:
        looks.append(len(looks) in {0, 2})
        if len(looks) == 4:
            enough.set()
        return looks[-1]

    monkeypatch.setattr(store.sqlite_lane, "PATIENCE", 0.0)
    monkeypatch.setattr(store.sqlite_lane, "is_locked", look)
    async with SqliteStore(f"sqlite:///{path}") as opened:
        going = threading.Event()
        working = asyncio.ensure_future(opened._writer.run(lambda connection: going.wait(10)))
        await enough.wait()
        going.set()
        await working
    assert not told(caplog)


async def test_the_error_names_the_file_and_who_may_look(path: Path) -> None:
    with locking(path), pytest.raises(StoreUnavailable) as refused:
        async with SqliteStore(f"sqlite:///{path}?busy_timeout=0.01") as opened:
            await opened.heartbeat(WorkerId("a"), LEASE, start=True)
    assert str(refused.value) == (
        f"{path}: database is locked by another process; `fuser -v '{path}'` shows which have it open"
    )


@pytest.mark.parametrize(("name", "why"), [("no.db", "file is not a database"), ("nodir/x", "unable to open database")])
async def test_a_file_that_is_no_database_is_named(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "no.db").write_text("this is no database, and long enough to be seen as none")
    with pytest.raises(StoreUnavailable, match=f"{name}: {why}"):
        async with SqliteStore(f"sqlite:///{tmp_path / name}"):
            pass


def test_a_migration_tells_of_a_lock_too(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with locking(path), pytest.raises(StoreUnavailable, match=r"was not migrated: database is locked$"):
        migrate(f"sqlite:///{path}?busy_timeout=0.01")
    assert len(told(caplog)) == 1


def test_looking_makes_no_file(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "none.db", "BEGIN IMMEDIATE")
    assert not list(tmp_path.iterdir())
