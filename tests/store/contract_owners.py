"""The contract's promises on who else is there: owners are served in turn, and workers see their peers."""

from typing import Any

from events.ids import ChatId, WorkerId
from store.contract import Store
from tests.store.contract_workers import LONG, let_die
from tests.store.making import WORKER, appending


async def add(store: Store, name: str, owner: str, since: int, **changes: Any) -> None:
    given: dict[str, Any] = {"status": "pending", "updated_at": since, "owner": owner} | changes
    await store.append(appending(0, chat=ChatId(name), **given))


async def due(store: Store, limit: int) -> list[str]:
    found = await store.find_due(agents=["agent"], reader_level=1, limit=limit)
    return [chat.chat for chat in found]


class OwnerContract:
    async def test_each_owners_oldest_comes_before_anybodys_second(self, store: Store) -> None:
        for n in range(4):
            await add(store, f"a{n}", "a", 10 + n)
        for n in range(2):
            await add(store, f"b{n}", "b", 20 + n)
        await add(store, "c0", "c", 5)
        assert await due(store, 100) == ["c0", "a0", "b0", "a1", "b1", "a2", "a3"]
        assert await due(store, 2) == ["c0", "a0"]

    async def test_a_thousand_chats_of_one_owner_starve_nobody(self, store: Store) -> None:
        for n in range(400):
            await add(store, f"a{n:03}", "a", n)
        for owner in ("b", "c"):
            await add(store, owner, owner, 5000)
        assert await due(store, 4) == ["a000", "b", "c", "a001"]

    async def test_interruptions_of_all_owners_come_first(self, store: Store) -> None:
        lost: dict[str, Any] = {"status": "running", "holder": WORKER, "interrupting": True}
        await add(store, "p", "b", 1)
        await add(store, "i1", "a", 2, **lost)
        await add(store, "i2", "a", 3, **lost)
        assert await due(store, 100) == ["i1", "i2", "p"]


class PeerContract:
    async def test_a_heartbeat_tells_who_else_is_alive(self, store: Store, other: Store) -> None:
        one, two = WorkerId("one"), WorkerId("two")
        assert (await store.heartbeat(two, LONG, start=True)).peers == (two,)
        await let_die(store, WORKER)
        assert (await other.heartbeat(one, LONG, start=True)).peers == (one, two)
        assert (await store.heartbeat(two, LONG)).peers == (one, two)
        assert (await store.heartbeat(WORKER, LONG)).peers == (one, two)
        await store.forget_worker(two)
        assert (await store.heartbeat(two, LONG)).peers == (one,)
