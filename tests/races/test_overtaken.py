"""An interrupt or an edit that overtakes what has just finished: finished work is kept whole, nothing runs twice."""

from __future__ import annotations

import asyncio

import pytest

from generation.providers.script import UseTool, turn
from generation.tools.contract import Tool, tool
from store.contract import Store
from tests.races.gates import GatedStore, having, types
from tests.races.kit import CHAT, Stop, calls, engine_on, reached, settled, sound, texts, types_of


def counting(ran: list[str]) -> Tool:
    """A tool that must not run twice."""

    @tool(name="pay", crash="report")
    def pay() -> str:
        """Pay."""
        ran.append("pay")
        return "paid"

    return pay


async def test_an_interrupt_that_overtakes_a_finished_step_keeps_it_with_its_calls_answered(any_base: Store) -> None:
    gated = GatedStore(any_base)
    ran: list[str] = []
    script = [turn("I pay.", UseTool("pay")), turn("Done.")]
    async with (
        engine_on(gated, script, tools=[counting(ran)]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        held = gated.hold(when=having("step_committed"))
        await engine.create_chat("helper", "Pay", chat_id=CHAT)
        await held.arrived()
        await other.interrupt(CHAT)
        held.open()
        state = await settled(engine)
        assert texts(state) == ["user: Pay", "assistant: I pay. + call pay", "tool: result not_started"]
        assert ran == []
        resumed = await engine.resume(CHAT)
        assert resumed.status in ("pending", "running")  # as the worker may take it at once, or is just looking
        state = await settled(engine)
    assert texts(state)[-1] == "assistant: Done."
    await sound(any_base)


async def test_an_interrupt_that_overtakes_a_finished_report_tool_keeps_its_result(any_base: Store) -> None:
    gated = GatedStore(any_base)
    ran: list[str] = []
    async with (
        engine_on(gated, [calls("pay"), turn("Done.")], tools=[counting(ran)]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        held = gated.hold(when=having("tool_result_recorded"))
        await engine.create_chat("helper", "Pay", chat_id=CHAT)
        await held.arrived()
        assert ran == ["pay"]
        await other.interrupt(CHAT)
        held.open()
        state = await settled(engine)
        assert texts(state) == ["user: Pay", "assistant: call pay", "tool: result paid"]
        await engine.resume(CHAT)
        state = await settled(engine)
    assert texts(state)[-1] == "assistant: Done."
    assert ran == ["pay"]
    await sound(any_base)


async def test_an_interrupt_that_overtakes_the_first_of_two_results_keeps_both(any_base: Store) -> None:
    gated = GatedStore(any_base)
    ran: list[str] = []
    stop = Stop()

    @tool(crash="report")
    async def slow() -> str:
        """Take long."""
        await stop.here()
        return "slow"

    async with (
        engine_on(gated, [calls("pay", "slow")], tools=[counting(ran), slow], grace=10) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        held = gated.hold(when=having("tool_result_recorded"))
        await engine.create_chat("helper", "Pay", chat_id=CHAT)
        await stop.arrived()
        await held.arrived()
        await other.interrupt(CHAT)
        held.open()
        await reached(other, lambda state: any(call.recorded for call in state.control.indexes.open_calls))
        stop.go()
        state = await settled(engine)
    assert texts(state) == ["user: Pay", "assistant: call pay + call slow", "tool: result paid", "tool: result slow"]
    assert ran == ["pay"]
    await sound(any_base)


async def test_an_interrupt_answers_what_runs_past_the_grace_as_unknown(any_base: Store) -> None:
    stop = Stop()

    @tool(crash="report")
    async def stubborn() -> str:
        """Do not end."""
        while not stop._go.is_set():
            try:
                await stop.here()
            except asyncio.CancelledError:
                stop.times += 100
        return "late"

    async with engine_on(GatedStore(any_base), [calls("stubborn")], tools=[stubborn], grace=0.05) as engine:
        await engine.create_chat("helper", "Go", chat_id=CHAT)
        await stop.arrived()
        await engine.interrupt(CHAT)
        state = await settled(engine)
        assert texts(state)[-1] == "tool: result interrupted_unknown"
        stop.go()
    log = await sound(any_base)
    assert "tool_result_recorded" not in [r.event.type for r in log]


async def test_an_edit_while_a_tool_runs_ends_it_before_another_starts(any_base: Store) -> None:
    stop, order = Stop(), []

    @tool(crash="report")
    async def work() -> str:
        """Work."""
        order.append("begins")
        try:
            if order.count("begins") == 1:
                await stop.here()
            return "worked"
        finally:
            order.append("ends")

    gated = GatedStore(any_base)
    async with (
        engine_on(gated, [calls("work"), calls("work"), turn("Done.")], tools=[work]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        await engine.create_chat("helper", "Work", chat_id=CHAT)
        await stop.arrived()
        await other.edit_message(CHAT, "1.0", "Work again")
        state = await settled(engine)
    assert texts(state) == ["user: Work again", "assistant: call work", "tool: result worked", "assistant: Done."]
    assert order == ["begins", "ends", "begins", "ends"]
    log = await sound(any_base)
    # The old holder keeps the chat and starts over; nothing of the old tool is in the log.
    assert [r.event.type for r in log].count("acquired") == 1
    assert [r.event.type for r in log].count("tool_result_recorded") == 1


async def test_an_edit_waits_no_longer_than_the_grace_for_a_tool_that_does_not_end(any_base: Store) -> None:
    stop, begun = Stop(), []

    @tool(crash="report")
    async def stubborn() -> str:
        """Do not end at the first request."""
        begun.append(1)
        if len(begun) > 1:
            return "second"
        while not stop._go.is_set():
            try:
                await stop.here()
            except asyncio.CancelledError:
                stop.times += 100
        return "first"

    async with engine_on(
        GatedStore(any_base), [calls("stubborn"), calls("stubborn"), turn("Done.")], tools=[stubborn], grace=0.05
    ) as engine:
        await engine.create_chat("helper", "Go", chat_id=CHAT)
        await stop.arrived()
        await engine.edit_message(CHAT, "1.0", "Go again")
        state = await settled(engine)
        stop.go()
    assert texts(state) == ["user: Go again", "assistant: call stubborn", "tool: result second", "assistant: Done."]
    await sound(any_base)


async def test_an_edit_that_overtakes_a_finished_result_drops_it(any_base: Store) -> None:
    gated = GatedStore(any_base)
    ran: list[str] = []
    async with (
        engine_on(gated, [calls("pay"), turn("Never mind.")], tools=[counting(ran)]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        held = gated.hold(when=having("tool_result_recorded"))
        await engine.create_chat("helper", "Pay", chat_id=CHAT)
        await held.arrived()
        overtaken = gated.tried[-1]
        await other.edit_message(CHAT, "1.0", "Do not pay")
        held.open()
        state = await settled(engine)
    assert overtaken not in gated.written
    assert "tool_result_recorded" in types(overtaken)
    assert texts(state) == ["user: Do not pay", "assistant: Never mind."]
    assert "tool_result_recorded" not in await types_of(any_base)
    await sound(any_base)


@pytest.mark.parametrize("half", ["text", "nothing"])
async def test_an_interrupt_mid_answer_keeps_what_came(any_base: Store, half: str) -> None:
    stop = Stop()
    script = [turn("Half", stop.at(), " an answer") if half == "text" else turn(stop.at(), "Text")]
    async with engine_on(GatedStore(any_base), script) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        await engine.interrupt(CHAT)
        state = await settled(engine)
        stop.go()
    assert texts(state) == ["user: Hello", *(["assistant: Half (interrupted)"] if half == "text" else [])]
    await sound(any_base)
