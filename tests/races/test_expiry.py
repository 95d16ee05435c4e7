"""Results against a deadline: until an expiry is in the log results count, and after it they do not."""

from __future__ import annotations

import asyncio

import pytest

from chatfold.engine import Engine
from chatstate.errors import ActionStale, Refusal, TransitionNotAllowed
from events.parts import OnExpiry
from generation.agents import Limits
from generation.providers.script import turn
from generation.tools.contract import Tool
from store.contract import Store
from tests.races.gates import GatedStore, having
from tests.races.kit import CHAT, ManualClock, Stop, calls, engine_on, reached, settled, sound, texts, types_of, until

ASK = Tool(name="ask", description="Ask.", schema={"type": "object", "properties": {}}, runner="client")


def asking(store: Store, *script: object, on_expiry: OnExpiry = "go_on") -> Engine:
    limits = Limits(action_timeout=30, on_expiry=on_expiry)
    return engine_on(store, [calls("ask"), *script], tools=[ASK], limits=limits, poll=0.02)  # type: ignore[list-item]


async def asked(engine: Engine) -> tuple[int, str]:
    """Start a chat that asks its client; the action and the call."""
    await engine.create_chat("helper", "Hello", chat_id=CHAT)
    control = (await reached(engine, lambda state: state.control.status == "requires_action")).control
    assert control.action is not None
    return control.action.id, control.indexes.open_calls[0].key


async def test_results_after_the_deadline_count_until_the_expiry_is_written(base: Store, clock: ManualClock) -> None:
    gated = GatedStore(base)
    async with asking(gated, "Thanks.") as engine:
        action, call = await asked(engine)
        held = gated.hold("append", having("action_expired"))
        clock.advance(60)
        await held.arrived()
        await engine.submit_tool_results(CHAT, action, {call: "blue"})
        held.open()
        state = await settled(engine)
    assert texts(state) == ["user: Hello", "assistant: call ask", "tool: result blue", "assistant: Thanks."]
    assert "action_expired" not in await types_of(base)
    await sound(base)


async def test_results_while_the_expiry_is_written_lose(base: Store, clock: ManualClock) -> None:
    gated, stop = GatedStore(base), Stop()
    async with (
        asking(GatedStore(base), turn("Never mind.", stop.at())) as engine,
        engine_on(gated, [], worker=False) as other,
    ):
        action, call = await asked(engine)
        submitted = gated.hold("append", having("results_submitted"))
        submitting = asyncio.create_task(other.submit_tool_results(CHAT, action, {call: "blue"}))
        await submitted.arrived()
        clock.advance(60)
        await reached(engine, lambda state: state.control.status == "running")
        submitted.open()
        with pytest.raises(TransitionNotAllowed) as refused:
            await submitting
        assert (refused.value.trigger, refused.value.state) == ("submit_results", "R0")
        stop.go()
        state = await settled(engine)
    assert texts(state)[2:] == ["tool: result action_timed_out", "assistant: Never mind."]
    assert "results_submitted" not in await types_of(base)
    await sound(base)


async def test_results_of_an_action_that_expired_are_stale_for_the_next(base: Store, clock: ManualClock) -> None:
    gated = GatedStore(base)
    async with asking(gated, calls("ask"), "Thanks.") as engine:
        action, call = await asked(engine)
        clock.advance(60)
        control = (
            await reached(engine, lambda state: state.control.action is not None and state.control.action.id != action)
        ).control
        before = await types_of(base)
        with pytest.raises(ActionStale):
            await engine.submit_tool_results(CHAT, action, {call: "blue"})
        assert await types_of(base) == before
        assert control.action is not None
        await engine.submit_tool_results(CHAT, control.action.id, {control.indexes.open_calls[0].key: "red"})
        state = await settled(engine)
        with pytest.raises(Refusal):
            await engine.submit_tool_results(CHAT, action, {call: "blue"})
    assert [text for text in texts(state) if text.startswith("tool")] == [
        "tool: result action_timed_out",
        "tool: result red",
    ]
    await sound(base)


async def test_an_expiry_after_the_results_finds_nothing_to_expire(base: Store, clock: ManualClock) -> None:
    """The next action is open already when the late expiry runs again: its own deadline counts."""
    gated = GatedStore(base)
    async with asking(gated, calls("ask")) as engine:
        action, call = await asked(engine)
        held = gated.hold("append", having("action_expired"))
        clock.advance(60)
        await held.arrived()
        await engine.submit_tool_results(CHAT, action, {call: "blue"})
        await reached(engine, lambda state: state.control.action is not None and state.control.action.id != action)
        held.open()
        await until(lambda: engine.worker is not None and not engine.worker._acquirer.wake.is_set())
        polled = gated.hold("find_due", after=True)
        await polled.arrived()
        polled.open()
        assert (await engine.state(CHAT)).control.status == "requires_action"
    assert "action_expired" not in await types_of(base)
    await sound(base)


async def test_an_expiry_that_ends_the_turn_leaves_it_owed(base: Store, clock: ManualClock) -> None:
    gated = GatedStore(base)
    async with asking(gated, "Thanks.", on_expiry="end_turn") as engine:
        action, call = await asked(engine)
        clock.advance(60)
        state = await reached(engine, lambda state: state.control.status == "waiting")
        assert texts(state)[2:] == ["tool: result action_timed_out"]
        with pytest.raises(TransitionNotAllowed):
            await engine.submit_tool_results(CHAT, action, {call: "blue"})
    await sound(base)


async def test_two_workers_expire_an_action_once(base: Store, clock: ManualClock) -> None:
    gated, other = GatedStore(base), GatedStore(base)
    async with asking(gated, "Never mind.") as engine, engine_on(other, ["Never mind."], tools=[ASK], poll=0.02):
        await asked(engine)
        gates = [each.hold("append", having("action_expired")) for each in (gated, other)]
        clock.advance(60)
        for gate in gates:
            await gate.arrived()
        for gate in gates:
            gate.open()
        await reached(engine, lambda state: state.control.status == "waiting")
    assert (await types_of(base)).count("action_expired") == 1
    await sound(base)


async def test_a_command_and_an_expiry(base: Store, clock: ManualClock) -> None:
    gated = GatedStore(base)
    async with asking(gated, "Hi again.") as engine:
        await asked(engine)
        held = gated.hold("append", having("action_expired"))
        clock.advance(60)
        await held.arrived()
        await engine.send_message(CHAT, "Never mind", busy="interrupt")
        held.open()
        state = await settled(engine)
    assert texts(state)[2:] == ["tool: result interrupt", "user: Never mind", "assistant: Hi again."]
    assert "action_expired" not in await types_of(base)
    await sound(base)
