"""What it takes to load a long chat, header, transcript and all, and what keeping it for that takes of the disk."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from events.ids import ChatId
from store import open_store
from store.building import build_segments
from store.loading import load_chat, read_recorded
from tests.benchmarks.work import Texts
from tests.store.long_chats import long_chat, put

MESSAGES = 10_000
TIMES = 15
RAW = 2.5
"""MB that a plain table takes for 2,000 messages of 1 kB."""
OTHERS = 20
"""Other chats beside the one measured, so that the database plans as it would."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    if request.param == "sqlite":
        return sqlite_url
    make: Callable[[], str] = request.getfixturevalue("durable_database")
    return make()


@pytest.mark.bench
@pytest.mark.timeout(600)
def test_a_chat_of_ten_thousand_messages_is_loaded_by_its_segments(url: str) -> None:
    by_segments, whole = asyncio.run(measure(url))
    bar = 50 if url.startswith("sqlite") else 100
    print(
        f"{url.partition(':')[0]}: load {MESSAGES:,} messages of 1 kB: {by_segments:.0f} ms; fold alone {whole:.0f} ms"
    )
    assert by_segments <= bar


@pytest.mark.bench
@pytest.mark.timeout(600)
def test_what_is_stored_of_two_thousand_messages_is_little_more_than_their_rows(url: str) -> None:
    empty, whole, share = asyncio.run(store_chat(url, 2000))
    size = (whole - empty) / 1e6
    print(f"{url.partition(':')[0]}: 2,000 messages of 1 kB take {size:.2f} MB, {share / 1e6:.2f} MB of it segments")
    assert size <= 1.6 * RAW


async def store_chat(url: str, messages: int) -> tuple[int, int, int]:
    """Return the database's bytes without a chat and with it, and the bytes of its segments."""
    async with open_store(url) as store:
        pass
    empty = database_bytes(url)
    async with open_store(url) as store:
        await put(store, long_chat(messages, Texts()), ChatId("long"))
        await build_segments(store, ChatId("long"))
        share = sum(len(segment.data) for segment in await store.read_segments(ChatId("long")))
    return empty, database_bytes(url), share


def database_bytes(url: str) -> int:
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.stat().st_size
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
            "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
        ).fetchone()
        assert row is not None
        return int(row[0])


async def measure(url: str) -> tuple[float, float]:
    texts = Texts()
    async with open_store(url) as store:
        for place in range(OTHERS):
            await put(store, long_chat(100, texts), ChatId(f"other-{place}"))
        chat = long_chat(MESSAGES, texts)
        header = await put(store, chat, ChatId("long"))
        start = time.perf_counter()
        written = await build_segments(store, header.chat)
        kept = await store.read_segments(header.chat)
        print(
            f"built {written} segments, {sum(len(each.data) for each in kept):,} bytes, "
            f"of {header.version:,} events in {time.perf_counter() - start:.1f} s"
        )
        messages = len(chat.state.messages)
        del chat
    times: list[float] = []
    busy: list[float] = []
    async with open_store(url) as store:
        for _ in range(TIMES):
            gc.collect()
            start, cpu = time.perf_counter(), time.process_time()
            loaded = await load_chat(store, header.chat, transcript=True)
            times.append((time.perf_counter() - start) * 1000)
            busy.append((time.process_time() - cpu) * 1000)
            assert loaded is not None
            assert len(loaded.state.messages) == messages
            del loaded
        print(f"of a load, this process's own time: {statistics.median(busy):.0f} ms")
        start = time.perf_counter()
        await read_recorded(store, header.chat)
        return statistics.median(times), (time.perf_counter() - start) * 1000
