"""Chats that a worker holds without running them, and the race between a command that takes a chat and the worker."""

from __future__ import annotations

import asyncio

import pytest

from chatfold.engine import Engine
from events.ids import ChatId
from generation.providers.script import turn
from generation.providers.scripted import ScriptedProvider
from generation.worker import Worker
from store.contract import Store
from tests.races.gates import GatedStore, having, types
from tests.races.kit import CHAT, Stop, engine_on, reached, settled, sound, texts, types_of, until


def worker_of(engine: Engine) -> Worker:
    assert engine.worker is not None
    return engine.worker


async def greeted(engine: Engine) -> None:
    """A chat that waits, after one turn, its runner gone."""
    await engine.create_chat("helper", "Hello", chat_id=CHAT)
    await settled(engine)
    await until(lambda: worker_of(engine).running == ())


async def test_a_chat_taken_by_a_command_whose_caller_left_is_released_and_run(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi.", "Well."]) as engine:
        await greeted(engine)
        held = gated.hold("append", having("message_sent", "acquired"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await held.arrived()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (await engine.state(CHAT)).control.status == "running"
        assert worker_of(engine).running == ()
        await worker_of(engine)._strays.find()
        state = await settled(engine)
    assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
    assert (await types_of(any_base)).count("released") == 1
    await sound(any_base)


async def test_a_stray_that_was_interrupted_is_finished(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi."]) as engine:
        await greeted(engine)
        held = gated.hold("append", having("message_sent", "acquired"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await held.arrived()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        receipt = await engine.interrupt(CHAT)
        assert receipt.state == "I0"
        await worker_of(engine)._strays.find()
        state = await settled(engine)
    assert state.control.status == "waiting"
    assert (await types_of(any_base))[-2:] == ["turn_interrupted", "interruption_finished"]
    await sound(any_base)


async def test_a_beat_finds_strays(base: Store) -> None:
    """Not by a call of the test but by the worker's own heartbeat."""
    gated = GatedStore(base)
    async with engine_on(gated, ["Hi.", "Well."], lease=0.3) as engine:
        await greeted(engine)
        held = gated.hold("append", having("message_sent", "acquired"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await held.arrived()
        sending.cancel()
        state = await reached(engine, lambda state: state.control.turns == 2 and state.control.status == "waiting")
    assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
    await sound(base)


async def test_a_chat_that_a_command_is_taking_is_no_stray(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi.", "Well."]) as engine:
        await greeted(engine)
        held = gated.hold("append", having("message_sent", "acquired"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await held.arrived()
        # Another command on the same chat comes and goes meanwhile.
        await engine.set_title(CHAT, "A talk")
        await worker_of(engine)._strays.find()
        held.open()
        await sending
        await settled(engine)
    log = await types_of(any_base)
    assert "released" not in log
    assert log.count("acquired") == 2
    await sound(any_base)


async def test_only_the_reply_of_the_append_that_took_a_chat_starts_its_effect(any_base: Store) -> None:
    gated = GatedStore(any_base)
    provider = ScriptedProvider(["Hi.", "Well.", "Never asked for."])
    async with engine_on(gated, provider) as engine:
        await greeted(engine)
        held = gated.hold("append", having("message_sent", "acquired"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await held.arrived()
        # The next command finds the chat held here and its attempt started: how far that is it cannot know.
        await engine.set_title(CHAT, "A talk")
        assert worker_of(engine).running == ()
        held.open()
        await sending
        state = await settled(engine)
    assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
    assert len(provider.requests) == 2
    await sound(any_base)


async def test_an_effect_that_a_lost_runner_began_is_not_begun_again_by_a_command(any_base: Store) -> None:
    """Heartbeats came through and their replies did not: the worker gave its chats up, and holds them still."""
    gated, stop = GatedStore(any_base), Stop()
    provider = ScriptedProvider([turn("Well", stop.at()), "Well, well."])
    async with engine_on(gated, provider) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        worker_of(engine)._roster.runners[ChatId(CHAT)].lose()
        await until(lambda: worker_of(engine).running == ())
        await engine.set_title(CHAT, "A talk")
        stop.go()
        state = await settled(engine)
    assert texts(state) == ["user: Hello", "assistant: Well, well."]
    log = await types_of(any_base)
    assert log.count("released") == 1
    assert log.count("attempt_started") == 2
    await sound(any_base)


async def test_a_chat_that_a_command_takes_while_strays_are_looked_at_is_not_released(any_base: Store) -> None:
    gated, first, second = GatedStore(any_base), Stop(), Stop()
    provider = ScriptedProvider([turn("Hi.", first.at()), turn("Well.", second.at())])
    async with engine_on(gated, provider) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await first.arrived()
        listed = gated.hold("held_by", after=True)
        looking = asyncio.create_task(worker_of(engine)._strays.find())
        await listed.arrived()
        first.go()
        await settled(engine)
        await until(lambda: worker_of(engine).running == ())
        loading = gated.hold("load_header")
        listed.open()
        await loading.arrived()
        await engine.send_message(CHAT, "How are you?")
        await second.arrived()
        loading.open()
        await looking
        second.go()
        state = await settled(engine)
    assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
    assert len(provider.requests) == 2
    assert "released" not in await types_of(any_base)
    await sound(any_base)


@pytest.mark.parametrize("adopted", [True, False], ids=["adopted", "taken"])
async def test_a_poll_that_saw_the_chat_pending_before_a_command_took_it(any_base: Store, adopted: bool) -> None:
    gated, stop = GatedStore(any_base), Stop()
    gated.deaf = True
    provider = ScriptedProvider([turn("Well.", stop.at())])
    async with (
        engine_on(GatedStore(any_base), [], worker=False) as other,
        engine_on(gated, provider) as engine,
    ):
        await until(lambda: not worker_of(engine)._acquirer.wake.is_set() and not worker_of(engine)._acquirer.backlog)
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        polled = gated.hold("find_due", after=True)
        worker_of(engine)._acquirer.wake.set()
        await polled.arrived()
        await other.interrupt(CHAT)
        taken = gated.hold("append", having("message_sent"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await taken.arrived()
        assert types(gated.written[-1])[:2] == ("message_sent", "acquired")
        if adopted:
            taken.open()
            await stop.arrived()
            polled.open()
            await until(lambda: not worker_of(engine)._acquirer.wake.is_set())
        else:
            polled.open()
            await until(lambda: CHAT in worker_of(engine)._due)
            taken.open()
            await stop.arrived()
        await sending
        assert worker_of(engine).running == (CHAT,)
        # The runner that works is the one that is told of an interrupt.
        await engine.interrupt(CHAT)
        state = await settled(other)
    assert texts(state)[-1] == "assistant: Well. (interrupted)"
    assert (await types_of(any_base)).count("acquired") == 1
    await sound(any_base)


async def test_commands_at_once_take_no_more_than_there_are_slots(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, lambda _: "Hi.", capacity=1) as engine:
        await greeted(engine)
        gates = [gated.hold("append", having("chat_created")) for _ in range(2)]
        tasks = [asyncio.create_task(engine.create_chat("helper", "Hi", chat_id=name)) for name in ("a", "b")]
        for gate in gates:
            await gate.arrived()
        taken = [append for append in gated.tried if "acquired" in types(append) and append.chat in ("a", "b")]
        assert len(taken) == 1
        for gate in gates:
            gate.open()
        await asyncio.gather(*tasks)
        for name in ("a", "b"):
            await settled(engine, name)
            await sound(any_base, name)


async def test_a_worker_that_stops_lets_go_of_a_chat_that_a_command_takes_meanwhile(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi."]) as engine:
        await greeted(engine)
        held = gated.hold("append", having("message_sent", "acquired"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await held.arrived()
        stopping = asyncio.create_task(worker_of(engine).stop())
        await until(lambda: worker_of(engine)._roster.stopping is not None)
        held.open()
        await sending
        await stopping
        assert worker_of(engine).running == ()
        assert (await engine.state(CHAT)).control.status == "pending"
        # From now on commands append, and take nothing.
        assert (await engine.send_message(CHAT, "Hello?")).status == "pending"
    assert (await types_of(any_base))[-2:] == ["released", "message_sent"]
    await sound(any_base)


async def test_an_interrupt_between_a_take_and_its_runner_is_seen(any_base: Store) -> None:
    gated, stop = GatedStore(any_base), Stop()
    async with (
        engine_on(gated, ["Hi.", turn("Well", stop.at())]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        await greeted(engine)
        held = gated.hold("append", having("message_sent", "acquired"), after=True)
        sending = asyncio.create_task(engine.send_message(CHAT, "How are you?"))
        await held.arrived()
        await other.interrupt(CHAT)
        await until(lambda: CHAT in worker_of(engine)._missed)
        held.open()
        await sending
        state = await settled(engine)
    assert state.control.status == "waiting"
    assert (await types_of(any_base))[-1] == "interruption_finished"
    await sound(any_base)


async def test_a_repeated_command_does_not_do_an_effect_again(any_base: Store) -> None:
    """The repeat reads the chat while its effect is under way; the effect is through when the repeat goes on."""
    gated, stop = GatedStore(any_base), Stop()
    provider = ScriptedProvider(["Hi.", turn("Well.", stop.at())])
    async with engine_on(gated, provider) as engine:
        await greeted(engine)
        await engine.send_message(CHAT, "How are you?", command_id="s1")
        await stop.arrived()
        await until(lambda: len(provider.requests) == 2)
        reading = gated.hold("read_events")
        repeating = asyncio.create_task(engine.send_message(CHAT, "How are you?", command_id="s1"))
        await reading.arrived()
        stop.go()
        await until(lambda: worker_of(engine).running == ())
        reading.open()
        assert (await repeating).repeated
        await until(lambda: worker_of(engine).running == () and not worker_of(engine)._strays.suspects)
        state = await settled(engine)
    assert len(provider.requests) == 2
    assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
    await sound(any_base)
