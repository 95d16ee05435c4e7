"""The rules of a lease: a new id for each, renewed while it is fresh and the loop turns; its end is the end."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Iterator

import pytest

from chatfold.engine import Engine
from events.ids import WorkerId
from generation.lease import Lease
from generation.providers.script import turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import tool
from store.contract import Store
from tests.races.gates import GatedStore
from tests.races.kit import CHAT, Stop, calls, engine_on, settled, sound, texts, until
from tests.races.test_workers import id_of


def lease_of(engine: Engine) -> Lease:
    assert engine.worker is not None
    return engine.worker._lease


async def test_each_start_has_an_id_of_its_own(any_base: Store) -> None:
    async with engine_on(GatedStore(any_base), []) as engine:
        assert engine.worker is not None
        first = id_of(engine)
        await engine.worker.stop()
        await engine.worker.start()
        assert id_of(engine) != first
        living = {each.worker for each in await any_base.list_workers() if each.expires_at > await any_base.now()}
        assert living == {id_of(engine)}, "the lease that was given back is over"


async def test_a_row_that_is_stale_is_left_and_all_work_stops_at_once(base: Store) -> None:
    stop = Stop()
    async with engine_on(GatedStore(base), ScriptedProvider([turn("Half", stop.at()), turn("Whole.")])) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        old = id_of(engine)
        await base.forget_worker(old)
        assert await lease_of(engine).beat()
        assert engine.worker is not None
        assert (engine.worker.running, id_of(engine) == old) == ((), False)
        assert not (await base.heartbeat(old, 1_000_000)).renewed
        engine.worker._acquirer.wake.set()
        assert texts(await settled(engine)) == ["user: Hello", "assistant: Whole."]
    await sound(base)


async def test_a_heartbeat_without_an_answer_does_not_keep_the_work_going(base: Store) -> None:
    """The store takes the request and says nothing: the lease runs out by the process's own clock."""
    gated, stop, now = GatedStore(base), Stop(), [0.0]
    async with engine_on(gated, [turn("Half", stop.at())], lease=0.3, poll=60) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        held = gated.hold("heartbeat")
        await held.arrived()
        now[0] = engine.runtime.lease_until + 1
        engine.runtime.boot = lambda: now[0]
        await until(lambda: engine.worker is not None and not engine.worker.running)
        assert engine.runtime.lease_until == -math.inf
        held.open()


async def test_no_heartbeat_is_sent_while_the_loop_does_not_turn(base: Store) -> None:
    gated = GatedStore(base)
    async with engine_on(gated, []) as engine:
        lease = lease_of(engine)
        assert lease.watch is not None
        asked = gated.lose("heartbeat", effect=False, times=100)
        lease.watch._ticked = -math.inf
        assert not await lease.beat()
        assert asked.happened == 0
        lease.watch.tick()
        asked.times = 0
        assert await lease.beat()


class Told(logging.Handler):
    """Sets an event when the watch speaks, in whatever thread."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked = threading.Event()
        self.stacks: list[list[str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == "event_loop_blocked":
            self.stacks.append(vars(record)["stack"])
            self.blocked.set()


@pytest.fixture
def told() -> Iterator[Told]:
    handler, logger = Told(), logging.getLogger("generation.watchdog")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


async def test_a_tool_that_blocks_the_loop_is_named_and_the_chat_goes_on(base: Store, told: Told) -> None:
    @tool(crash="rerun")
    async def compute() -> str:
        """Compute for long, on the event loop."""
        assert told.blocked.wait(20)
        return "computed"

    provider = ScriptedProvider(lambda request: "Well." if len(request.messages) > 1 else calls("compute"))
    async with engine_on(GatedStore(base), provider, tools=[compute], lease=1.0, poll=0.05) as engine:
        await engine.create_chat("helper", "Go", chat_id=CHAT)
        state = await settled(engine)
    assert texts(state)[-1] == "assistant: Well."
    assert any("test_leases.py" in place and place.endswith(" compute") for place in told.stacks[0])
    await sound(base)


async def test_the_thread_ends_with_its_worker(base: Store) -> None:
    def watching() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "chatfold loop watch"]

    before = len(watching())
    async with engine_on(GatedStore(base), []):
        assert len(watching()) == before + 1
    assert len(watching()) == before


async def test_workers_know_of_each_other_with_the_next_heartbeat(any_base: Store) -> None:
    async with (
        engine_on(GatedStore(any_base), []) as first,
        engine_on(GatedStore(any_base), []) as second,
    ):
        await any_base.heartbeat(WorkerId("of-other-agents"), 60_000_000, start=True)
        for engine in (first, second):
            await lease_of(engine).beat()
        assert set(lease_of(first).kin) == set(lease_of(second).kin) == {id_of(first), id_of(second)}
        await asyncio.sleep(0)
