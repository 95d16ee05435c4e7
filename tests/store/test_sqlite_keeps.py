"""SQLite against the memory store: the same calls, the same answers on due chats, the feed, and what is deleted."""

import random
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from events.ids import ChatId, WorkerId
from store.contract import FEED_START, FeedPosition, Hint, Store
from store.memory import MemoryStore
from store.notify import Bus
from store.sqlite import SqliteStore
from tests.store.contract_races import hint_at
from tests.store.making import CHAT, appending, events, header

NOW = 10_000_000


@pytest.fixture
async def pair(migrated_sqlite: str) -> AsyncIterator[tuple[Store, Store]]:
    async with SqliteStore(migrated_sqlite, clock=lambda: NOW) as sqlite, MemoryStore(clock=lambda: NOW) as memory:
        yield sqlite, memory


def some_chat(rng: random.Random, number: int) -> dict[str, Any]:
    status = rng.choice(["pending", "pending", "running", "requires_action", "waiting"])
    due = rng.choice([None, NOW - rng.randrange(50), NOW + 5]) if status != "running" else None
    return {
        "chat": ChatId(f"chat {number}"),
        "status": status,
        "owner": rng.choice(["a", "a", "a", "a", "b", "c"]),
        "agent": rng.choice(["agent", "agent", "other"]),
        "due_at": due,
        "updated_at": NOW - rng.randrange(100),
        "interrupting": status == "running" and rng.random() < 0.3,
        "holder": WorkerId(rng.choice(["dead", "alive"])) if status == "running" else None,
    }


@pytest.mark.parametrize("seed", range(5))
async def test_due_chats_come_in_the_same_order(pair: tuple[Store, Store], seed: int) -> None:
    rng = random.Random(seed)
    chats = [some_chat(rng, number) for number in range(60)]
    for store in pair:
        await store.heartbeat(WorkerId("alive"), 1000, start=True)
        for chat in chats:
            await store.append(appending(0, **chat))
    sqlite, memory = pair
    for limit in (0, 1, 5, 100):
        asked: dict[str, Any] = {"agents": ["agent"], "reader_level": 1, "limit": limit, "exclude": ["chat 3"]}
        found = await memory.find_due(**asked)
        assert list(await sqlite.find_due(**asked)) == list(found)
        assert len(found) == limit or len(found) > 5


async def test_a_backlog_of_one_owner_hides_no_other(pair: tuple[Store, Store]) -> None:
    sqlite, _ = pair
    for number in range(300):
        await sqlite.append(appending(0, chat=ChatId(f"a {number:03}"), status="pending", updated_at=number, owner="a"))
    for number in range(3):
        await sqlite.append(appending(0, chat=ChatId(f"b {number}"), status="pending", updated_at=5000, owner="b"))
    found = await sqlite.find_due(agents=["agent"], reader_level=1, limit=3)
    assert [chat.chat for chat in found] == ["a 000", "b 0", "a 001"]


async def everything(store: Store, after: FeedPosition = FEED_START, limit: int = 1000) -> list[Any]:
    return [
        (event.position, event.chat, event.stored.envelope.version)
        for event in await store.read_feed(after=after, limit=limit)
    ]


async def test_the_feed_is_read_from_any_place(pair: tuple[Store, Store]) -> None:
    for store in pair:
        for number in range(4):
            await store.append(appending(0, "a", "a", "b", chat=ChatId(f"chat {number}")))
            await store.append(appending(3, "c", "d", chat=ChatId(f"chat {number}")))
        await store.import_chat(header(30, ChatId("imported")), events(1, *(f"i{n // 3}" for n in range(30))), {})
        assert await store.delete(ChatId("chat 2"), 5)
        await store.append(appending(5, chat=ChatId("chat 0")))
    sqlite, memory = pair
    feed, wanted = await everything(sqlite), await everything(memory)
    assert [event[1:] for event in feed] == [event[1:] for event in wanted]
    assert await sqlite.feed_end() == feed[-1][0]
    for place in range(len(feed)):
        for limit in (1, 4, 1000):
            rest = await everything(sqlite, feed[place][0], limit)
            assert rest == feed[place + 1 :][: len(rest)]
            assert [event[1:] for event in rest] == [
                event[1:] for event in await everything(memory, wanted[place][0], limit)
            ]


async def test_other_processes_hear_of_a_deletion(migrated_sqlite: str) -> None:
    async with SqliteStore(migrated_sqlite) as store, SqliteStore(migrated_sqlite) as other, store.hints() as hints:
        other._writer._bus = Bus()  # as if it were of another process
        await other.append(appending(0, "a", "b"))
        await hint_at(hints, CHAT, 2)
        await other.delete(CHAT, 2)
        assert await hint_at(hints, CHAT, 3) == Hint(CHAT, 3, due=False)


async def test_blobs_go_with_the_last_chat_that_uses_them(pair: tuple[Store, Store]) -> None:
    for store in pair:
        for name in "xy":
            await store.append(appending(0, "a", chat=ChatId(name), blobs={"shared": b"s", name: b"own"}))
        unused = msgspec.structs.replace(appending(1, chat=ChatId("x")), unused_blobs=frozenset({"shared", "x"}))
        await store.append(unused)
        assert set(await store.get_blobs(["shared", "x", "y"])) == {"shared", "y"}
        await store.delete(ChatId("y"), 1)
        assert not await store.get_blobs(["shared", "x", "y"])
        assert await store.collect_blobs() == 0
