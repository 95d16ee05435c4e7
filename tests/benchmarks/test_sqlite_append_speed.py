"""Appends of 64 chats at once to a SQLite file, beside what the module itself can do. Printed.

Full durability throughout, one step about 1 kB. The limits are the plain module called from one thread: one commit for
each step, and all waiting steps in one commit. What is compared was measured in turns, in one run.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from events.envelope import Envelope, StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from events.records import Actor
from store.contract import Append, Appended, Header, NewEvent
from store.sqlite import SqliteStore
from tests.store.making import header

CHATS = 64
STEPS = 40
RUNS = 5
BODY = os.urandom(1000)
CONTROL = os.urandom(512)
FACTS = os.urandom(250)
WORKER = WorkerId("worker-0123456789abcdef")

SCHEMA = """
CREATE TABLE chat (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL DEFAULT 0, updated_at REAL);
CREATE TABLE event (chat_id INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL, at REAL,
PRIMARY KEY (chat_id, seq));
"""
INSERT = "INSERT INTO event (chat_id, seq, type, body, at) VALUES (?, ?, 'message', ?, julianday('now'))"
UPDATE = "UPDATE chat SET seq = ?, updated_at = julianday('now') WHERE id = ? AND seq = ?"


def raw(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO chat (id) VALUES (?)", [(chat,) for chat in range(CHATS)])
    return connection


class Limit:
    """The plain module. Each call of ``one`` takes every chat ``STEPS`` steps on."""

    def __init__(self, path: Path) -> None:
        self.connection = raw(path)
        self.at = 0
        self.waiting = list[tuple[int, int, asyncio.Future[None]]]()
        self.wake = asyncio.Event()

    def write(self, steps: list[tuple[int, int]]) -> None:
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        for chat, seq in steps:
            execute(INSERT, (chat, seq, BODY))
            execute(UPDATE, (seq, chat, seq - 1))
        execute("COMMIT")

    async def one_by_one(self) -> None:
        for seq in range(self.at + 1, self.at + STEPS + 1):
            for chat in range(CHATS):
                self.write([(chat, seq)])
        self.at += STEPS

    async def grouped(self) -> None:
        writer = asyncio.create_task(self.writer())
        await asyncio.gather(*(self.chat(chat) for chat in range(CHATS)))
        writer.cancel()
        self.at += STEPS

    async def writer(self) -> None:
        while True:
            await self.wake.wait()
            batch, self.waiting = self.waiting, []
            self.wake.clear()
            await asyncio.to_thread(self.write, [(chat, seq) for chat, seq, _ in batch])
            for _, _, done in batch:
                done.set_result(None)

    async def chat(self, chat: int) -> None:
        for seq in range(self.at + 1, self.at + STEPS + 1):
            done = asyncio.get_running_loop().create_future()
            self.waiting.append((chat, seq, done))
            self.wake.set()
            await done


def step(chat: str, version: int, number: int) -> Append:
    """An append as a worker makes it: what an attempt brought, the decision and the next start."""
    actor = Actor(kind="worker", id=WORKER)
    kinds = ("step_committed", "attempt_started") if number % 2 else ("tool_result_recorded", "step_committed", "more")
    made = list[NewEvent]()
    for index, kind in enumerate(kinds):
        envelope = Envelope(
            version=version + index + 1,
            type=kind,
            schema=1,
            recorded_at=1_700_000_000_000_000 + number,
            actor=actor,
            source="running",
            dest="running",
            command=CommandId(f"{number}-0123456789abcdef0123456789abcdef"),
            index=index,
        )
        stored = StoredEvent(envelope=envelope, facts=FACTS, content=BODY if index == 0 else b"", digest=FACTS[:32])
        made.append(NewEvent(stored=stored))
    after = msgspec.structs.replace(
        FIRST, chat=ChatId(chat), version=version + len(made), updated_at=number, control=CONTROL, digest=FACTS[:32]
    )
    return Append(
        chat=ChatId(chat), expected_version=version, header=after, events=tuple(made), drop_partials=bool(number % 2)
    )


FIRST: Header = header(status="running", holder=WORKER, attempt=1, epoch=1)


class Ours:
    """The store, driven as the limits are."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.chats = {hashlib.sha256(b"%d" % n).hexdigest()[:32]: [0, 0] for n in range(CHATS)}

    async def appends(self) -> None:
        await asyncio.gather(*(self.chat(chat) for chat in self.chats))

    async def chat(self, chat: str) -> None:
        place = self.chats[chat]
        for number in range(place[1], place[1] + STEPS):
            append = step(chat, place[0], number)
            assert isinstance(await self.store.append(append), Appended)
            place[0] = append.header.version
        place[1] += STEPS


async def rate(run: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Return steps per second, and microseconds of CPU per step."""
    begun, spent = time.perf_counter(), time.process_time()
    await run()
    steps = CHATS * STEPS
    return steps / (time.perf_counter() - begun), (time.process_time() - spent) / steps * 1e6


@pytest.mark.bench
@pytest.mark.timeout(300)
async def test_speed_of_appends_to_a_file(tmp_path: Path) -> None:
    found = dict[str, list[tuple[float, float]]]()
    async with SqliteStore(f"sqlite:///{tmp_path / 'chats.db'}") as store:
        ours, single, group = Ours(store), Limit(tmp_path / "single.db"), Limit(tmp_path / "group.db")
        for _ in range(RUNS + 1):
            for name, run in (("single", single.one_by_one), ("group", group.grouped), ("ours", ours.appends)):
                found.setdefault(name, []).append(await rate(run))
        for limit in (single, group):
            limit.connection.close()
    median = {name: statistics.median(steps for steps, _ in runs[1:]) for name, runs in found.items()}
    for name, runs in found.items():
        cpu = statistics.median(each for _, each in runs[1:])
        print(f"{name}: {median[name]:,.0f} steps/s, {cpu:.0f} us of CPU a step")
    print(f"ours / single {median['ours'] / median['single']:.2f}, ours / group {median['ours'] / median['group']:.2f}")
    assert median["ours"] >= 2.5 * median["single"]
