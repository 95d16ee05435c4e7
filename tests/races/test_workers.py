"""Two workers and one chat: acquiring, losing a lease, taking over from a dead holder."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from chatfold.engine import Engine
from events.ids import WorkerId
from events.vocabulary import Acquired
from generation.providers.script import turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import tool
from store.contract import Store
from tests.races.gates import GatedStore, having, types
from tests.races.kit import CHAT, Stop, calls, engine_on, log_of, reached, settled, sound, texts, types_of, until


def id_of(engine: Engine) -> WorkerId:
    assert engine.worker is not None
    return engine.worker.worker


async def test_of_two_workers_that_acquire_one_chat_one_gets_it(any_base: Store) -> None:
    slow, fast = GatedStore(any_base), GatedStore(any_base)
    async with engine_on(GatedStore(any_base), [], worker=False) as other:
        held = slow.hold("append", having("acquired"))
        async with engine_on(slow, []) as late:
            await other.create_chat("helper", "Hello", chat_id=CHAT)
            await held.arrived()
            stop = Stop()
            async with engine_on(fast, [turn("Hi.", stop.at())]) as early:
                await stop.arrived()
                held.open()
                await until(lambda: late.worker is not None and not late.worker.running)
                stop.go()
                state = await settled(early)
    assert texts(state) == ["user: Hello", "assistant: Hi."]
    assert slow.written == []
    assert (await types_of(any_base)).count("acquired") == 1
    await sound(any_base)


async def test_a_lost_lease_is_left_behind_and_the_worker_comes_back_under_a_new_id(any_base: Store) -> None:
    gated, stop = GatedStore(any_base), Stop()
    provider = ScriptedProvider([turn("Half", stop.at()), turn("Whole.")])
    async with engine_on(gated, provider, lease=1.2, poll=0.1) as engine:
        old = id_of(engine)
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        lost_at = (await engine.state(CHAT)).control.version
        await any_base.forget_worker(old)
        await until(lambda: id_of(engine) != old)
        state = await settled(engine)
        new = id_of(engine)
        assert new != old
    log = await sound(any_base)
    actors = {r.envelope.actor.id for r in log if r.version > lost_at}
    assert old not in actors
    assert texts(state) == ["user: Hello", "assistant: Whole."]
    taken = [r.event for r in log if r.event.type == "acquired"]
    assert [(getattr(event, "epoch", 0), getattr(event, "takeover", None)) for event in taken] == [
        (1, False),
        (2, True),
    ]


async def test_nothing_is_written_under_a_lost_lease_by_a_plan_that_runs_again(any_base: Store) -> None:
    gated = GatedStore(any_base)
    gated.deaf = True
    async with (
        engine_on(gated, ["One.", "One again.", "Two."], lease=1.2, poll=0.1) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        old = id_of(engine)
        held = gated.hold("append", having("step_committed"))
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await held.arrived()
        sent = await other.send_message(CHAT, "And now?")
        await any_base.forget_worker(old)
        await until(lambda: id_of(engine) != old)
        held.open()
        state = await reached(other, lambda state: state.control.turns == 2 and state.control.status == "waiting")
    assert texts(state) == ["user: Hello", "assistant: One again.", "user: And now?", "assistant: Two."]
    log = await sound(any_base)
    assert old not in {r.envelope.actor.id for r in log if r.version > sent.version}


async def test_a_store_that_is_away_for_a_lease_ends_the_work(base: Store) -> None:
    """The lease cannot be renewed and nobody can say so: the process's own clock does."""
    gated, stop = GatedStore(base), Stop()
    now = [0.0]
    async with engine_on(gated, [turn("Half", stop.at()), turn("Whole.")], lease=0.3, poll=0.05) as engine:
        engine.runtime.boot = lambda: now[0]
        await until(lambda: engine.runtime.lease_until < 1)
        old = id_of(engine)
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        away = gated.away("heartbeat")
        now[0] = 1000.0
        await until(lambda: engine.worker is not None and not engine.worker.running)
        assert not engine.runtime.lease_fresh()
        away.times = 0
        # Though the database may have renewed the row: what was taken for lost is not revived, and the chat is taken
        # over when the old row has aged out.
        state = await settled(engine)
        assert id_of(engine) != old
    assert texts(state) == ["user: Hello", "assistant: Whole."]
    await sound(base)


async def test_no_effect_starts_under_a_lease_that_has_run_out(base: Store) -> None:
    gated, ran = GatedStore(base), []

    @tool(crash="rerun")
    def look() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    provider = ScriptedProvider([calls("look"), "Seen."])
    async with engine_on(gated, provider, tools=[look], lease=600) as engine:
        held = gated.hold("append", having("step_committed"), after=True)
        await engine.create_chat("helper", "Look", chat_id=CHAT)
        await held.arrived()
        engine.runtime.boot = lambda: engine.runtime.lease_until
        held.open()
        await until(lambda: engine.worker is not None and not engine.worker.running)
        assert ran == []
        assert (await types_of(base))[-1] == "attempt_started"


async def stuck(stack: AsyncExitStack, base: Store, stop: Stop) -> Engine:
    """A worker that takes the chat, stops in its model call, and hears of nothing."""
    gated = GatedStore(base)
    gated.deaf = True
    engine = await stack.enter_async_context(engine_on(gated, [turn("Half", stop.at())], poll=0.05))
    await stop.arrived()
    return engine


async def test_a_chat_of_a_dead_holder_is_taken_over_and_the_late_answer_is_dropped(any_base: Store) -> None:
    stop = Stop()
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(any_base), [], worker=False))
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        dead = await stuck(stack, any_base, stop)
        await any_base.forget_worker(id_of(dead))
        await stack.enter_async_context(engine_on(GatedStore(any_base), ["Whole."], poll=0.05))
        state = await settled(other)
        stop.go()
        await until(lambda: dead.worker is not None and not dead.worker.running)
        assert (await other.state(CHAT)).control == state.control
    assert texts(state) == ["user: Hello", "assistant: Whole."]
    await sound(any_base)


async def test_a_chat_that_was_interrupting_is_finished_by_its_new_holder(any_base: Store) -> None:
    stop = Stop()
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(any_base), [], worker=False))
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        dead = await stuck(stack, any_base, stop)
        assert (await other.interrupt(CHAT)).state == "I0"
        await any_base.forget_worker(id_of(dead))
        # No slot is needed for it: an interruption is always picked up.
        await stack.enter_async_context(engine_on(GatedStore(any_base), [], poll=0.05))
        state = await settled(other)
        stop.go()
    assert state.control.status == "waiting"
    assert (await types_of(any_base))[-3:] == ["turn_interrupted", "acquired", "interruption_finished"]
    await sound(any_base)


async def test_an_interrupt_of_a_dead_holders_chat_needs_no_worker(any_base: Store) -> None:
    stop = Stop()
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(any_base), [], worker=False))
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        dead = await stuck(stack, any_base, stop)
        await any_base.forget_worker(id_of(dead))
        receipt = await other.interrupt(CHAT)
        assert receipt.state == "W"
        stop.go()
        await until(lambda: dead.worker is not None and not dead.worker.running)
    log = await sound(any_base)
    assert log[-1].event.type == "turn_interrupted"
    assert getattr(log[-1].event, "epoch", None) == 2


@pytest.mark.parametrize("interrupted", [False, True])
async def test_the_third_takeover_of_a_history_ends_its_turn(any_base: Store, interrupted: bool) -> None:
    stops = [Stop() for _ in range(3)]
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(engine_on(GatedStore(any_base), [], worker=False))
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        for stop in stops:
            dead = await stuck(stack, any_base, stop)
            assert (await other.state(CHAT)).control.holder == id_of(dead)
            if interrupted and stop is stops[-1]:
                await other.interrupt(CHAT)
            await any_base.forget_worker(id_of(dead))
        provider = ScriptedProvider([])
        await stack.enter_async_context(engine_on(GatedStore(any_base), provider, poll=0.05))
        state = await settled(other)
        assert provider.requests == []
        for stop in stops:
            stop.go()
    control = state.control
    if interrupted:
        assert (control.status, control.last_error) == ("waiting", None)
    else:
        assert control.status == "error"
        assert control.last_error is not None
        assert control.last_error.kind == "worker_lost"
    log = await sound(any_base)
    assert [r.event.takeover for r in log if isinstance(r.event, Acquired)] == [False, True, True, True]


async def test_a_takeover_reports_what_may_have_run_and_runs_again_what_may(any_base: Store) -> None:
    stop, again = Stop(), asyncio.Event()
    ran: list[str] = []

    @tool(crash="report")
    async def pay() -> str:
        """Pay."""
        ran.append("pay")
        await stop.here()
        return "paid"

    @tool(crash="rerun")
    async def look() -> str:
        """Look."""
        ran.append("look")
        if ran.count("look") == 1:
            await again.wait()
        return "seen"

    gated = GatedStore(any_base)
    gated.deaf = True
    async with (
        engine_on(GatedStore(any_base), [], worker=False) as other,
        engine_on(gated, [calls("pay", "look")], tools=[pay, look], poll=0.05) as dead,
    ):
        await other.create_chat("helper", "Pay", chat_id=CHAT)
        await stop.arrived()
        await until(lambda: "look" in ran)
        await any_base.forget_worker(id_of(dead))
        async with engine_on(GatedStore(any_base), ["Done."], tools=[pay, look], poll=0.05):
            state = await settled(other)
        stop.go()
        again.set()
    assert texts(state)[2:] == ["tool: result worker_lost", "tool: result seen", "assistant: Done."]
    assert ran == ["pay", "look", "look"]
    assert all("tool_result_recorded" not in types(append) for append in gated.written)
    await sound(any_base)
    assert len(await log_of(any_base)) == state.control.version
