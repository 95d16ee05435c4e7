"""What a turn, a send and the store cost as a chat grows: the same at ten messages and at thousands."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psycopg
import pytest

from chatfold.engine import Engine
from chatfold.repair import repair_chat
from tests.benchmarks.ours import Ours
from tests.benchmarks.work import STEPS, TEXTS

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]

LENGTHS: Final = (10, 1_000, 5_000)
RAW_BYTES: Final = 2_500_000
"""What 2,000 messages of 1 kB take in plain rows of PostgreSQL, as it was measured with the limit's tables."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database that keeps its promises."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/chats.db"
    make: Callable[[], str] = request.getfixturevalue("durable_database")
    return make()


async def grown(ours: Ours, messages: int) -> str:
    """Return a chat with about so many messages, made by turns."""
    chat = await ours.new_chat()
    for _ in range(max(messages // STEPS, 1)):
        await ours.turn(chat)
    return chat


async def test_a_turn_costs_the_same_at_any_length(url: str) -> None:
    ours = Ours("chatfold", url)
    await ours.open()
    try:
        chats = {length: await grown(ours, length) for length in LENGTHS}
        took: dict[int, list[float]] = {length: [] for length in LENGTHS}
        spent: dict[int, list[float]] = {length: [] for length in LENGTHS}
        for number in range(41):
            for length, chat in chats.items():
                clock, cpu = time.perf_counter(), time.process_time()
                await ours.turn(chat)
                if number:
                    took[length].append((time.perf_counter() - clock) * 1000)
                    spent[length].append((time.process_time() - cpu) * 1000)
    finally:
        await ours.close()
    print(f"\na turn by messages of history, {url.partition(':')[0]}")
    for length in LENGTHS:
        print(
            f"  {length:>6}  {statistics.median(took[length]):7.2f} ms  {statistics.median(spent[length]):7.2f} ms CPU"
        )
    first, last = LENGTHS[0], LENGTHS[-1]
    assert statistics.median(took[last]) <= 1.2 * statistics.median(took[first])


async def test_a_send_on_a_cold_chat_costs_the_same_at_any_length(url: str) -> None:
    ours = Ours("chatfold", url)
    await ours.open()
    try:
        chats = {length: [await grown(ours, 10) for _ in range(20)] for length in (10,)}
        chats[10_000] = [await grown(ours, 10_000)]
    finally:
        await ours.close()
    took: dict[int, list[float]] = {length: [] for length in chats}
    async with Engine(url, worker=False) as engine:
        engine.queue_limit = 1_000
        await engine.send_message(chats[10][-1], TEXTS[0])
        for number in range(15):
            for length, cold in chats.items():
                start = time.perf_counter()
                await engine.send_message(cold[number % len(cold)], TEXTS[number])
                took[length].append((time.perf_counter() - start) * 1000)
    print(f"\na send from a process without a worker, {url.partition(':')[0]}")
    for length, values in took.items():
        print(f"  {length:>6} messages  {statistics.median(values):7.2f} ms")
    assert statistics.median(took[10_000]) <= 1.5 * statistics.median(took[10])


async def test_what_is_stored_is_linear(url: str) -> None:
    ours = Ours("chatfold", url)
    await ours.open()
    try:
        empty = _stored(url)
        chat = await grown(ours, 2_000)
        await repair_chat(ours.engine.store, chat)
        await asyncio.sleep(1)
        grew = _stored(url) - empty
        segments = await ours.engine.store.read_segments(chat)  # type: ignore[arg-type]
    finally:
        await ours.close()
    cached = sum(len(segment.data) for segment in segments)
    print(
        f"\n2,000 messages of 1 kB, {url.partition(':')[0]}: {grew / 1e6:.2f} MB, {cached / 1e6:.2f} MB of it segments"
    )
    assert grew <= 1.6 * RAW_BYTES


def _stored(url: str) -> int:
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return path.stat().st_size
    with psycopg.connect(url, autocommit=True) as server:
        row = server.execute(
            "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchone()
        assert row is not None
        return int(row[0])
