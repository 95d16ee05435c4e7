"""A lease that a process took for lost is not revived, also where the store renewed it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.testing.stores import WrappedStore
from events.ids import ChatId, WorkerId
from events.vocabulary import Acquired
from generation.agents import Agent
from generation.lease import Lease
from generation.providers.script import Wait, turn
from generation.providers.scripted import ScriptedProvider
from generation.runtime import Runtime
from store.contract import Heartbeat, Store
from store.errors import StoreUnavailable
from store.memory import MemoryStore
from store.notes import WorkerNote
from tests.generation.tools.support import until

PATIENCE = 60.0


class SlowBeats(WrappedStore):
    """A store whose answers to heartbeats wait, where a test wants it, after they took effect."""

    def __init__(self) -> None:
        self.time = 1_000_000
        super().__init__(MemoryStore(clock=lambda: self.time))
        self.free = asyncio.Event()
        self.free.set()
        self.renewed = asyncio.Event()
        self.away = False
        self.answered = self.awaited = 0

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        if self.away:
            msg = "away"
            raise StoreUnavailable(msg)
        result = await super().heartbeat(worker, lease_us, start=start, note=note)
        if not self.free.is_set():
            self.renewed.set()
            await self.free.wait()
        self.answered += 1
        return result

    async def age(self, lease: float) -> None:
        """Let more than a lease pass, in which whoever still renews his own goes on doing so."""
        for _ in range(3):
            self.time += round(0.4 * lease * 1_000_000)
            self.awaited = self.answered + 2  # one may have been on its way
            await until(lambda: self.answered >= self.awaited)


class Here:
    """A lease in a process whose clock is the test's."""

    def __init__(self, store: SlowBeats, runtime: Runtime) -> None:
        self.store = store
        self.runtime = runtime
        self.time = 0.0
        self.told = 0
        runtime.boot = lambda: self.time
        self.lease = Lease(runtime, lambda _now: None, self._lost)

    def _lost(self) -> None:
        self.told += 1

    async def beat_under_way(self) -> asyncio.Task[bool]:
        """Renew the lease, and let the answer be on its way."""
        self.store.renewed.clear()
        self.store.free.clear()
        beat = asyncio.create_task(self.lease.beat())
        await self.store.renewed.wait()
        return beat


@pytest.fixture
async def here() -> AsyncIterator[Here]:
    store = SlowBeats()
    async with Engine(store, worker=False, settings=Settings(lease=3.0)) as engine:
        here = Here(store, engine.runtime)
        await here.lease.take()
        yield here


async def test_an_answer_in_time_goes_on_under_the_same_id(here: Here) -> None:
    before, beat = here.runtime.worker, await here.beat_under_way()
    here.time += 2.9
    here.store.free.set()
    assert await beat
    assert (here.runtime.worker, here.told) == (before, 0)
    assert here.runtime.lease_until == 3.0, "it counts from before the request"


@pytest.mark.parametrize("noticed", [True, False])
async def test_an_answer_after_the_end_brings_a_new_id(here: Here, *, noticed: bool) -> None:
    """Whether the end was noticed before the answer, or the loop stood still and both come at once."""
    before, beat = here.runtime.worker, await here.beat_under_way()
    here.time += 3.0
    if noticed:
        here.lease.check()
        assert here.told == 1
    here.store.free.set()
    assert await beat
    alive = [each.worker for each in await here.store.list_workers() if each.expires_at > here.store.time]
    assert before in alive, "the store did renew it"
    assert here.runtime.worker != before
    assert here.runtime.worker in alive
    assert here.runtime.lease_fresh()
    assert here.told == 1
    assert await here.lease.beat()
    assert here.told == 1


async def test_a_lease_that_was_lost_is_not_asked_for_again(here: Here) -> None:
    """It had run out here, and in the store it had not: another answer, or none, makes no difference."""
    before = here.runtime.worker
    here.time += 3.0
    here.lease.check()
    here.store.away = True
    with pytest.raises(StoreUnavailable):
        await here.lease.beat()
    here.store.away = False
    assert await here.lease.beat()
    assert here.runtime.worker != before
    assert here.told == 1


async def test_a_worker_that_stopped_its_runners_comes_back_as_another() -> None:
    """What it held under the old id is taken over from it once that has aged out, and by nobody before."""
    store, reached = SlowBeats(), asyncio.Event()
    model = ScriptedProvider([turn("cut", Wait(asyncio.Event(), reached.set)), turn("whole")])
    agent = Agent(name="a", model="scripted")
    settings = Settings(lease=0.9, poll=0.02)
    async with (
        Engine(store, [agent], providers={"scripted": model}, settings=settings) as engine,
        asyncio.timeout(PATIENCE),
    ):
        worker = engine.worker
        assert worker is not None
        late = 0.0
        boot = engine.runtime.boot
        engine.runtime.boot = lambda: boot() + late
        chat = (await engine.create_chat("a", "hi")).chat
        await reached.wait()
        before = worker.worker
        store.free.clear()
        await store.renewed.wait()
        late = 2.0
        await until(lambda: not worker.running)
        loaded = await engine.runtime.journal.load(ChatId(chat), transcript=True)
        assert loaded is not None
        assert loaded.state.control.holder == before
        worker.adopt(loaded)
        assert not worker.running, "a command whose append had taken the chat comes too late"
        store.free.set()
        await until(lambda: worker.worker != before and engine.runtime.lease_fresh())
        assert (await engine.state(chat)).control.holder == before
        assert not worker.running
        await store.age(0.9)
        await engine.settled(chat)
        held = [each.event for each in await engine.events(chat) if isinstance(each.event, Acquired)]
        assert [each.takeover for each in held] == [False, True]
        assert held[0].worker == before != held[1].worker
    assert len(model.requests) == 2


async def test_a_row_that_is_ahead_of_the_clock_and_is_not_renewed_is_over() -> None:
    """The database's clock was put back after its worker died, or while it lives: only the dead one's is ended."""
    time = 3_600_000_000
    store = MemoryStore(clock=lambda: time)
    dead, living = WorkerId("dead"), WorkerId("living")
    async with Engine(store, worker=False, settings=Settings(lease=3.0)) as engine:
        boot = 0.0
        engine.runtime.boot = lambda: boot
        lease = Lease(engine.runtime, lambda _now: None, lambda: None)
        for each in (dead, living):
            await store.heartbeat(each, 3_000_000, start=True, note=WorkerNote(lease=3_000_000))
        await lease.take()
        time = 1_000_000
        for _ in range(4):
            assert await lease.beat()
            assert await alive(store) == {dead, living, engine.runtime.worker}
            await store.heartbeat(living, 3_000_000)
            boot, time = boot + 1.0, time + 1_000_000
        assert await lease.beat()
        assert await alive(store) == {living, engine.runtime.worker}


async def alive(store: Store) -> set[WorkerId]:
    now = await store.now()
    return {each.worker for each in await store.list_workers() if each.expires_at > now}
