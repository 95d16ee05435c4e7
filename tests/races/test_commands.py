"""A command between a worker's decision and its append: the plan runs again on the new facts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from chatfold.engine import Engine
from chatfold.receipts import Receipt
from generation.providers.script import turn
from generation.tools.contract import tool
from store.contract import Store
from tests.races.gates import GatedStore, having, types
from tests.races.kit import CHAT, calls, engine_on, settled, sound, texts, types_of, until

Command = Callable[[Engine], Awaitable[Receipt]]


@tool(crash="rerun")
def look() -> str:
    """Look."""
    return "seen"


async def raced(store: Store, command: Command) -> tuple[list[str], GatedStore]:
    """Run a turn; hold the worker's append of the answer, give the command from another process, let go."""
    gated = GatedStore(store)
    answers = [turn("The answer."), turn("The next answer.")]
    async with engine_on(gated, answers) as engine, engine_on(GatedStore(store), [], worker=False) as other:
        held = gated.hold(when=having("step_committed"))
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await held.arrived()
        decided = gated.tried[-1]
        assert types(decided) == ("step_committed", "turn_finished")
        await command(other)
        held.open()
        state = await settled(engine)
    assert decided not in gated.written
    await sound(store)
    assert state.control.status == "waiting"
    return texts(state), gated


async def test_a_send_in_between_is_answered_in_the_next_turn(any_base: Store) -> None:
    shown, _ = await raced(any_base, lambda other: other.send_message(CHAT, "And now?"))
    assert shown == ["user: Hello", "assistant: The answer.", "user: And now?", "assistant: The next answer."]
    assert await types_of(any_base) == [
        "chat_created",
        "acquired",
        "policy_recorded",
        "attempt_started",
        "message_sent",
        "step_committed",
        "turn_finished",
        "attempt_started",
        "step_committed",
        "turn_finished",
    ]


async def test_an_interrupt_in_between_keeps_the_finished_step_whole(any_base: Store) -> None:
    shown, _ = await raced(any_base, lambda other: other.interrupt(CHAT))
    assert shown == ["user: Hello", "assistant: The answer."]
    assert (await types_of(any_base))[-2:] == ["turn_interrupted", "interruption_finished"]


async def test_a_send_that_interrupts_in_between_keeps_the_step_and_answers_the_message(any_base: Store) -> None:
    shown, _ = await raced(any_base, lambda other: other.send_message(CHAT, "Stop.", busy="interrupt"))
    assert shown == ["user: Hello", "assistant: The answer.", "user: Stop.", "assistant: The next answer."]


async def test_an_edit_in_between_drops_the_step(any_base: Store) -> None:
    shown, gated = await raced(any_base, lambda other: other.edit_message(CHAT, "1.0", "Hi"))
    assert shown == ["user: Hi", "assistant: The next answer."]
    assert [types(append) for append in gated.written].count(("step_committed", "turn_finished")) == 1


async def test_a_change_of_model_in_between_counts_from_the_next_decision(any_base: Store) -> None:
    shown, _ = await raced(any_base, lambda other: other.set_model(CHAT, "scripted/other"))
    assert shown == ["user: Hello", "assistant: The answer."]
    assert (await types_of(any_base))[-4:] == ["model_changed", "step_committed", "policy_recorded", "turn_finished"]


async def test_commands_between_an_acquire_and_its_append_are_decided_on(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(GatedStore(any_base), [], worker=False) as other:
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        held = gated.hold(when=having("acquired"))
        async with engine_on(gated, ["The answer."]) as engine:
            await held.arrived()
            overtaken = gated.tried[-1]
            await other.edit_message(CHAT, "1.0", "Hi")
            await other.set_model(CHAT, "scripted/other")
            held.open()
            state = await settled(engine)
    assert overtaken not in gated.written
    assert texts(state) == ["user: Hi", "assistant: The answer."]
    log = await sound(any_base)
    assert [r.event.type for r in log][:5] == [
        "chat_created",
        "message_edited",
        "model_changed",
        "acquired",
        "policy_recorded",
    ]


async def test_an_interrupt_before_an_acquire_leaves_nothing_to_acquire(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(GatedStore(any_base), [], worker=False) as other:
        await other.create_chat("helper", "Hello", chat_id=CHAT)
        held = gated.hold(when=having("acquired"))
        async with engine_on(gated, []) as engine:
            await held.arrived()
            await other.interrupt(CHAT)
            held.open()
            await until(lambda: engine.worker is not None and not engine.worker.running)
    assert gated.written == []
    assert await types_of(any_base) == ["chat_created", "turn_interrupted"]


@pytest.mark.parametrize("busy", ["queue", "interrupt"])
async def test_a_send_while_a_tool_batch_is_committed(any_base: Store, busy: str) -> None:
    gated = GatedStore(any_base)
    script = [calls("look"), turn("Seen."), turn("Next.")]
    async with (
        engine_on(gated, script, tools=[look]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        held = gated.hold(when=having("tool_result_recorded"))
        await engine.create_chat("helper", "Look", chat_id=CHAT)
        await held.arrived()
        await other.send_message(CHAT, "And?", busy="interrupt" if busy == "interrupt" else "queue")
        held.open()
        state = await settled(engine)
    await sound(any_base)
    kept = ["user: Look", "assistant: call look", "tool: result seen"]
    if busy == "queue":
        assert texts(state) == [*kept, "assistant: Seen.", "user: And?", "assistant: Next."]
    else:
        # The interrupted turn keeps the result; the message opens the next turn.
        assert texts(state) == [*kept, "user: And?", "assistant: Seen."]
