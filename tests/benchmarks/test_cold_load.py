"""What it takes to load a long chat, header, transcript and all, from a database that this process has not read yet."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Callable

import pytest

from events.ids import ChatId
from store import open_store
from store.building import build_segments
from store.loading import load_chat, read_recorded
from tests.benchmarks.work import Texts
from tests.store.long_chats import long_chat, put

MESSAGES = 10_000
TIMES = 15
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
    async with open_store(url) as store:
        for _ in range(TIMES):
            gc.collect()
            start = time.perf_counter()
            loaded = await load_chat(store, header.chat, transcript=True)
            times.append((time.perf_counter() - start) * 1000)
            assert loaded is not None
            assert len(loaded.state.messages) == messages
            del loaded
        start = time.perf_counter()
        await read_recorded(store, header.chat)
        return statistics.median(times), (time.perf_counter() - start) * 1000
