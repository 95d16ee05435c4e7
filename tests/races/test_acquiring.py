"""Many workers and one backlog: each chat is taken once, by one append, and nobody waits long for anybody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

from chatfold.engine import Engine
from events.ids import ChatId
from generation.providers.script import turn
from generation.providers.scripted import ScriptedProvider
from generation.ranking import rank
from generation.tools.contract import Tool
from generation.worker import Worker
from store.contract import Store
from tests.races.gates import PATIENCE, GatedStore, having, types
from tests.races.kit import CHAT, ManualClock, Stop, calls, engine_on, reached, settled, sound, types_of, until
from tests.races.test_workers import id_of

CROWD = 4


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next in rank waits so long that a busy machine does not make it act."""
    monkeypatch.setattr("generation.ranking.STEP", PATIENCE)


def worker_of(engine: Engine) -> Worker:
    assert engine.worker is not None
    return engine.worker


async def crowd(stack: AsyncExitStack, base: Store, **settings: Any) -> tuple[list[Engine], list[GatedStore]]:
    """Workers of one database that know of each other."""
    stores = [GatedStore(base) for _ in range(CROWD)]
    engines = [await stack.enter_async_context(engine_on(store, lambda _: "Hi.", **settings)) for store in stores]
    for engine in engines:
        await worker_of(engine)._lease.beat()
        assert len(worker_of(engine)._lease.kin) == CROWD
    return engines, stores


def tried(stores: Sequence[GatedStore]) -> list[str]:
    """Return the chats that somebody tried to acquire, each as often as it was tried."""
    return sorted(append.chat for store in stores for append in store.tried if "acquired" in types(append))


@pytest.mark.usefixtures("patient")
async def test_of_many_workers_that_hear_of_a_chat_one_tries_to_acquire_it(base: Store) -> None:
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(base), [], worker=False))
        engines, stores = await crowd(stack, base)
        names = [f"chat-{number}" for number in range(20)]
        for name in names:
            await other.create_chat("helper", "Hello", chat_id=name)
            await settled(other, name)
        assert tried(stores) == sorted(names)
        for name in names:
            [acquired] = [r for r in await sound(base, name) if r.event.type == "acquired"]
            firsts = [e for e in engines if rank(ChatId(name), id_of(e), worker_of(e)._lease.kin) == 0]
            assert [id_of(engine) for engine in firsts] == [acquired.envelope.actor.id]


@pytest.mark.usefixtures("patient")
async def test_a_backlog_that_all_find_at_once_is_shared(base: Store) -> None:
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(base), [], worker=False))
        engines, stores = await crowd(stack, base)
        for store in stores:
            store.away("find_due")
        names = [f"chat-{number}" for number in range(40)]
        for name in names:
            await other.create_chat("helper", "Hello", chat_id=name)
        for engine in engines:
            worker_of(engine)._acquirer._seen.clear()
        for store in stores:
            store._losses.clear()
        for engine in engines:
            worker_of(engine)._acquirer.wake.set()
        for name in names:
            await settled(other, name)
        assert tried(stores) == sorted(names)
        assert all(tried([store]) for store in stores), "each had its share"


async def test_a_full_worker_delays_others_once(base: Store) -> None:
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(base), [], worker=False))
        stop = Stop()
        full = await stack.enter_async_context(engine_on(GatedStore(base), [turn("Hi.", stop.at())], capacity=1))
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        free = await stack.enter_async_context(engine_on(GatedStore(base), lambda _: "Hi."))
        for engine in (full, free):
            await worker_of(engine)._lease.beat()
        kin = worker_of(free)._lease.kin
        names = [name for name in map("{}".format, range(50)) if rank(ChatId(name), id_of(full), kin) == 0]
        acquirer = worker_of(free)._acquirer
        await other.create_chat("helper", "Hello", chat_id=names[0])
        await settled(other, names[0])
        assert id_of(full) in acquirer._behind, "its turn came and went"
        now = asyncio.get_running_loop().time()
        assert acquirer._see(ChatId(names[1]), 0, now).turn == now, "for the next chats nobody waits for it"
        stop.go()
        await settled(other)


async def test_interruptions_are_picked_up_by_a_worker_without_a_slot(base: Store) -> None:
    names = ["a", "b", "c"]
    stops = {name: Stop() for name in names}
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(base), [], worker=False))
        for name in names:
            gated = GatedStore(base)
            gated.deaf = True
            dead = await stack.enter_async_context(engine_on(gated, [turn("Half", stops[name].at())], poll=0.05))
            await other.create_chat("helper", "Hello", chat_id=name)
            await stops[name].arrived()
            assert (await other.interrupt(name)).state == "I0"
            await base.forget_worker(id_of(dead))
            dead.runtime.agents = {}  # it is to take nothing more
        busy = Stop()
        full = await stack.enter_async_context(
            engine_on(GatedStore(base), [turn("Hi.", busy.at())], capacity=1, poll=0.05)
        )
        for name in names:
            await reached(other, lambda state: state.control.status == "waiting", name)
            assert (await types_of(base, name))[-2:] == ["acquired", "interruption_finished"]
        await full.create_chat("helper", "Hello", chat_id=CHAT)
        await busy.arrived()
        assert worker_of(full).running == (CHAT,)
        for stop in (busy, *stops.values()):
            stop.go()
        await settled(other)


async def test_one_chat_that_is_slow_to_serve_does_not_hold_up_the_others(base: Store, clock: ManualClock) -> None:
    gated = GatedStore(base)
    asking = Tool(name="ask", description="Ask.", schema={"type": "object", "properties": {}}, runner="client")
    provider = ScriptedProvider(lambda request: calls("ask") if len(request.messages) == 1 else turn("Well."))
    async with engine_on(gated, provider, tools=[asking]) as engine:
        for name in ("a", "b"):
            await engine.create_chat("helper", "Hello", chat_id=name)
            await reached(engine, lambda state: state.control.status == "requires_action", name)
        held = gated.hold("append", lambda append: append.chat == "a" and having("action_expired")(append))
        clock.advance(1000)
        worker_of(engine)._acquirer.wake.set()
        await held.arrived()
        await reached(engine, lambda state: state.control.status != "requires_action", "b")
        held.open()
        for name in ("a", "b"):
            await reached(engine, lambda state: state.control.status == "waiting", name)


@pytest.mark.parametrize("capacity", [1, 3])
async def test_owners_are_served_in_turn(base: Store, capacity: int) -> None:
    """One owner's thousand chats do not starve another's only one."""
    order: list[str] = []
    gated = GatedStore(base)
    async with engine_on(GatedStore(base), [], worker=False) as other:
        for number in range(12):
            await other.create_chat("helper", "Hello", chat_id=f"many-{number:02}", owner="many")
        await other.create_chat("helper", "Hello", chat_id="one", owner="one")
        async with engine_on(gated, lambda _: "Hi.", capacity=capacity) as engine:
            for name in ("one", *(f"many-{number:02}" for number in range(12))):
                await settled(other, name)
            await until(lambda: worker_of(engine).running == ())
        order = [append.chat for append in gated.written if "acquired" in types(append)]
    assert "one" in order[: max(2, capacity)]
    assert order[0] == "many-00"
