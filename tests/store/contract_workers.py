"""The contract's promises on leases and on what wants a worker. Leases end in database time, so tests wait for that."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from events.ids import ChatId, WorkerId
from store.contract import DueChat, Store
from tests.store.making import CHAT, WORKER, appending

LONG = 60_000_000
SHORT = 20_000
"""Microseconds of a lease that a test sees end."""


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something is so, at most ten seconds."""
    with anyio.fail_after(10):
        while not await condition():  # noqa: ASYNC110 - the condition is another process's or the clock's
            await anyio.sleep(0.002)


async def alive(store: Store, chat: ChatId = CHAT) -> bool:
    loaded = await store.load_header(chat)
    assert loaded is not None
    return loaded.holder_alive


async def let_die(store: Store, worker: WorkerId) -> None:
    """Give a worker a lease and wait until it is stale. The probe is a chat that nobody else looks at."""
    probe = ChatId(f"probe of {worker}")
    await store.append(appending(0, chat=probe, status="running", holder=worker, agent="nobody"))
    await store.heartbeat(worker, SHORT, start=True)

    async def dead() -> bool:
        return not await alive(store, probe)

    await until(dead)


class LeaseContract:
    async def test_a_chat_without_a_holder_has_none_alive(self, store: Store) -> None:
        await store.append(appending(0))
        assert not await alive(store)

    async def test_a_holder_lives_while_its_lease_is_fresh(self, store: Store, other: Store) -> None:
        await store.append(appending(0, status="running", holder=WORKER))
        assert not await alive(store)
        assert (await other.heartbeat(WORKER, LONG, start=True)).renewed
        assert await alive(store)
        assert await alive(other)

    async def test_a_heartbeat_tells_database_time(self, store: Store) -> None:
        before = await store.now()
        beat = await store.heartbeat(WORKER, LONG, start=True)
        assert before <= beat.now <= await store.now()

    async def test_a_first_heartbeat_needs_to_say_so(self, store: Store) -> None:
        assert not (await store.heartbeat(WORKER, LONG)).renewed
        await store.append(appending(0, status="running", holder=WORKER))
        assert not await alive(store)

    async def test_a_fresh_lease_is_renewed(self, store: Store) -> None:
        await store.append(appending(0, status="running", holder=WORKER))
        await store.heartbeat(WORKER, LONG, start=True)
        assert (await store.heartbeat(WORKER, LONG)).renewed
        assert (await store.heartbeat(WORKER, LONG, start=True)).renewed  # its reply may have been lost
        assert await alive(store)

    @pytest.mark.parametrize("start", [False, True])
    async def test_a_stale_lease_never_becomes_fresh_again(self, store: Store, start: bool) -> None:
        await store.append(appending(0, status="running", holder=WORKER))
        await let_die(store, WORKER)
        assert not await alive(store)
        assert not (await store.heartbeat(WORKER, LONG, start=start)).renewed
        assert not await alive(store)

    async def test_a_lease_is_dropped_at_once(self, store: Store) -> None:
        await store.append(appending(0, status="running", holder=WORKER))
        await store.heartbeat(WORKER, LONG, start=True)
        await store.forget_worker(WORKER)
        assert not await alive(store)
        assert not (await store.heartbeat(WORKER, LONG)).renewed
        await store.forget_worker(WorkerId("unknown"))

    async def test_what_a_worker_holds(self, store: Store) -> None:
        for name in ("b", "a"):
            await store.append(appending(0, chat=ChatId(name), status="running", holder=WORKER))
        await store.append(appending(0, chat=ChatId("foreign"), status="running", holder=WORKER, foreign=True))
        await store.append(appending(0, chat=ChatId("other"), status="running", holder=WorkerId("other")))
        assert sorted(await store.held_by(WORKER)) == ["a", "b"]
        await store.append(appending(1, chat=ChatId("a"), status="waiting"))
        assert list(await store.held_by(WORKER)) == ["b"]
        assert list(await store.held_by(WorkerId("none"))) == []


class DueContract:
    async def due(self, store: Store, **changes: Any) -> list[tuple[str, str]]:
        asked: dict[str, Any] = {"agents": ["agent"], "reader_level": 1, "limit": 100} | changes
        found = await store.find_due(**asked)
        assert all(isinstance(chat, DueChat) for chat in found)
        return [(chat.chat, chat.kind) for chat in found]

    async def add(self, store: Store, name: str, **changes: Any) -> None:
        await store.append(appending(0, chat=ChatId(name), **changes))

    async def test_nothing_is_due(self, store: Store) -> None:
        later = await store.now() + LONG
        await store.heartbeat(WORKER, LONG, start=True)
        await self.add(store, "waiting")
        await self.add(store, "error", status="error")
        await self.add(store, "retry", status="pending", due_at=later)
        await self.add(store, "deadline", status="requires_action", due_at=later)
        await self.add(store, "held", status="running", holder=WORKER)
        await self.add(store, "interrupted", status="running", holder=WORKER, interrupting=True)
        assert await self.due(store) == []

    async def test_pending_chats_are_due_oldest_first(self, store: Store) -> None:
        now = await store.now()
        await self.add(store, "retry", status="pending", due_at=now - 500, updated_at=now - 5000)
        await self.add(store, "new", status="pending", updated_at=now - 100)
        await self.add(store, "old", status="pending", updated_at=now - 1000)
        assert await self.due(store) == [("old", "pending"), ("retry", "pending"), ("new", "pending")]

    async def test_a_pending_chat_is_due_though_the_clock_was_put_back(self, store: Store) -> None:
        now = await store.now()
        await self.add(store, "ahead", status="pending", updated_at=now + LONG)
        await self.add(store, "retry", status="pending", due_at=now + LONG, updated_at=now + LONG)
        assert await self.due(store) == [("ahead", "pending")]

    async def test_excluded_chats_make_room_for_others(self, store: Store) -> None:
        now = await store.now()
        for age, name in enumerate(("c", "b", "a")):
            await self.add(store, name, status="pending", updated_at=now - 100 + age)
        await self.add(store, "dead", status="running", holder=WORKER, updated_at=now - 50)
        await self.add(store, "late", status="requires_action", due_at=now - 40)
        assert await self.due(store, limit=1, exclude=["c"]) == [("b", "pending")]
        rest = await self.due(store, exclude=["a", "b", "c", "nobody's"])
        assert rest == [("dead", "takeover"), ("late", "expired")]
        assert await self.due(store, exclude=["a", "b", "c", "dead", "late"]) == []

    async def test_a_retry_is_due_when_its_time_comes(self, store: Store) -> None:
        await self.add(store, "retry", status="pending", due_at=await store.now() + SHORT)
        await self.add(store, "action", status="requires_action", due_at=await store.now() + SHORT)

        async def both() -> bool:
            return await self.due(store) == [("retry", "pending"), ("action", "expired")]

        await until(both)

    async def test_chats_of_dead_holders_are_due(self, store: Store) -> None:
        await let_die(store, WORKER)
        await store.heartbeat(WorkerId("alive"), LONG, start=True)
        await self.add(store, "stale", status="running", holder=WORKER, updated_at=2)
        await self.add(store, "unknown", status="running", holder=WorkerId("never seen"), updated_at=1)
        await self.add(store, "held", status="running", holder=WorkerId("alive"))
        assert await self.due(store) == [("unknown", "takeover"), ("stale", "takeover")]

    async def test_interruptions_come_first(self, store: Store) -> None:
        now = await store.now()
        await self.add(store, "pending", status="pending", updated_at=1)
        await self.add(store, "expired", status="requires_action", due_at=3)
        await self.add(store, "lost", status="running", holder=WORKER, updated_at=2)
        await self.add(store, "interrupted", status="running", holder=WORKER, interrupting=True, updated_at=now)
        assert await self.due(store) == [
            ("interrupted", "interruption"),
            ("pending", "pending"),
            ("lost", "takeover"),
            ("expired", "expired"),
        ]
        assert await self.due(store, limit=2) == [("interrupted", "interruption"), ("pending", "pending")]
        assert await self.due(store, limit=0) == []

    async def test_only_what_the_worker_can_run(self, store: Store) -> None:
        for status, more in (
            ("pending", {}),
            ("requires_action", {"due_at": 1}),
            ("running", {"holder": WORKER}),
        ):
            changes = {"status": status, "updated_at": 1, **more}
            await self.add(store, f"{status} mine", **changes)
            await self.add(store, f"{status} of another agent", agent="other", **changes)
            await self.add(store, f"{status} foreign", foreign=True, **changes)
            await self.add(store, f"{status} newer", reader_level=2, **changes)
        mine = [("pending mine", "pending"), ("requires_action mine", "expired"), ("running mine", "takeover")]
        assert sorted(await self.due(store)) == mine
        assert await self.due(store, agents=[]) == []
        assert len(await self.due(store, agents=["agent", "other"])) == 6
        assert len(await self.due(store, reader_level=2)) == 6

    async def test_a_chat_is_due_no_longer_once_it_is_taken(self, store: Store) -> None:
        await store.heartbeat(WORKER, LONG, start=True)
        await self.add(store, "chat", status="pending", updated_at=1)
        assert await self.due(store) == [("chat", "pending")]
        await store.append(appending(1, chat=CHAT, status="running", holder=WORKER))
        assert await self.due(store) == []
        await store.append(appending(2, chat=CHAT, status="waiting"))
        assert await self.due(store) == []
