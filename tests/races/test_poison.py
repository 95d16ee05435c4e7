"""A chat that takes its workers or its runners down with it: it waits, is tried alone, and after three times fails."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from chatfold.engine import Engine
from events.control import Control
from events.ids import ChatId, WorkerId
from events.vocabulary import Released
from generation.faults import FIRST_DELAY, LONGEST_DELAY, ChatFaults
from generation.providers.script import turn
from generation.providers.scripted import ScriptedProvider
from store.contract import Store
from tests.races.gates import GatedStore, having
from tests.races.kit import CHAT, Stop, engine_on, reached, settled, sound, until
from tests.races.test_faults import Boot, look, worker_of
from tests.races.test_workers import id_of

TRIAL = 200.0
"""A third of the lease of ``engine_on``."""


async def lost_once(stack: AsyncExitStack, base: Store, *names: str) -> list[Stop]:
    """Have a worker take chats and be lost with them, within its model calls."""
    gated, stops = GatedStore(base), [Stop() for _ in names]
    gated.deaf = True
    provider = ScriptedProvider([turn("Half", stop.at()) for stop in stops])
    engine = await stack.enter_async_context(engine_on(gated, provider, poll=0.05))
    await until(lambda: len(worker_of(engine).running) == len(names))
    for stop in stops:
        await stop.arrived()
    await base.forget_worker(id_of(engine))
    engine.runtime.agents = {}
    return stops


async def takeovers(engine: Engine, name: str) -> int:
    return (await engine.state(name)).control.takeovers


async def test_a_chat_that_was_lost_before_waits_and_is_tried_alone(base: Store) -> None:
    names = ("a", "b", "c")
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(base), [], worker=False))
        for name in names:
            await other.create_chat("helper", "Hello", chat_id=name)
        stops = await lost_once(stack, base, *names) + await lost_once(stack, base, *names)
        assert [await takeovers(other, name) for name in names] == [1, 1, 1], "the first takeover waits for nothing"

        last = [Stop() for _ in names]
        engine = engine_on(GatedStore(base), ScriptedProvider([turn("Hi.", stop.at()) for stop in last]))
        boot = Boot(engine)
        async with engine:
            await until(lambda: set(worker_of(engine)._faults.held_back()) == set(names))
            assert [await takeovers(other, name) for name in names] == [1, 1, 1]
            # A chat without a history of losses is not held up by them.
            fresh = await engine.create_chat("helper", "Hello", chat_id="fresh")
            assert fresh.chat in worker_of(engine).running
            await last[0].arrived()
            boot.seconds += FIRST_DELAY
            await look(engine)
            await last[1].arrived()
            assert sorted([await takeovers(other, name) for name in names]) == [1, 1, 2], "one is on trial"
            await look(engine)
            assert sorted([await takeovers(other, name) for name in names]) == [1, 1, 2]
            boot.seconds += TRIAL
            await look(engine)
            await last[2].arrived()
            assert sorted([await takeovers(other, name) for name in names]) == [1, 2, 2], "it did no harm: the next"
            for stop in (*stops, *last):
                stop.go()


async def test_a_trial_that_ends_well_lets_the_next_begin(base: Store) -> None:
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(base), [], worker=False))
        for name in ("a", "b"):
            await other.create_chat("helper", "Hello", chat_id=name)
        stops = await lost_once(stack, base, "a", "b") + await lost_once(stack, base, "a", "b")
        engine = engine_on(GatedStore(base), lambda _: "Hi.")
        boot = Boot(engine)
        async with engine:
            await until(lambda: set(worker_of(engine)._faults.held_back()) == {"a", "b"})
            boot.seconds += FIRST_DELAY
            await look(engine)
            await until(lambda: worker_of(engine).running == ())
            boot.seconds += TRIAL
            await look(engine)
            for name in ("a", "b"):
                assert (await settled(other, name)).control.status == "waiting"
        for stop in stops:
            stop.go()


@pytest.mark.parametrize("after", [1, 2])
async def test_runners_that_die_are_counted_whichever_workers_they_die_in(any_base: Store, after: int) -> None:
    """A worker that is new to the chat goes by what the log counts."""
    deaths = 0
    async with engine_on(GatedStore(any_base), [], worker=False) as other:
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        for number in (after, 3 - after):
            gated, provider = GatedStore(any_base), ScriptedProvider(lambda _: "Hi.")
            died = gated.lose("append", having("step_committed"), effect=False, error=RuntimeError, times=number)
            engine = engine_on(gated, provider)
            boot = Boot(engine)
            async with engine:
                if deaths:
                    await until(lambda engine=engine: worker_of(engine)._faults.held_back() == (CHAT,))  # type: ignore[misc]
                    assert died.happened == 0, "this worker waits too, though it did not see the runner die"
                for each in range(1, number + 1):
                    boot.seconds += LONGEST_DELAY
                    worker_of(engine)._acquirer.wake.set()
                    await until(lambda died=died, each=each: died.happened == each)  # type: ignore[misc]
                    deaths += 1
                    await reached(other, lambda state: state.control.status != "running")
        state = await settled(other)
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "worker_lost"
    log = await sound(any_base)
    assert [one.event.reason for one in log if isinstance(one.event, Released)] == ["fault", "fault"]


def lost(times: int, *, interrupting: bool = False, held: bool = True) -> Control:
    holder = WorkerId("gone") if held else None
    status = "running" if held else "pending"
    return Control(takeovers=times, interrupting=interrupting, holder=holder, status=status)  # type: ignore[arg-type]


def test_who_may_be_acquired() -> None:
    now, waits = [0.0], list[float]()
    faults = ChatFaults(lambda: now[0], trial=5.0)
    faults.on_wait = waits.append
    a, b = ChatId("a"), ChatId("b")
    assert faults.may_acquire(a, lost(0))
    assert faults.may_acquire(a, lost(1, interrupting=True)), "an interruption never waits"
    assert faults.may_acquire(a, lost(2)), "it will be failed, not run"
    assert waits == []
    assert not faults.may_acquire(a, lost(1))
    assert not faults.may_acquire(b, lost(2, held=False))
    assert waits == [1.0, 2.0]
    now[0] = 2.0
    assert faults.may_acquire(a, lost(1))
    assert faults.may_acquire(a, lost(1)), "asking again changes nothing"
    assert not faults.may_acquire(b, lost(2, held=False))
    assert waits[2:] == [5.0]
    faults.forgive(a)
    assert waits[3:] == [0.0], "who stood in line is looked at again"
    assert faults.may_acquire(b, lost(2, held=False)), "the trial is over when its chat went well"
    now[0] = 7.0
    assert faults.may_acquire(b, lost(2, held=False))
    faults.note(b)
    assert faults.holds_back(b)
