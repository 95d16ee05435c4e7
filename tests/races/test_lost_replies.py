"""Lost replies: the write took effect, or it did not, and its writer does not know.

Nothing happens twice, work goes on.
"""

from __future__ import annotations

import pytest

from chatstate.errors import IdempotencyConflict
from generation.providers.script import turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import tool
from store.contract import Store
from store.errors import OutcomeUnknown, StoreError
from tests.races.gates import GatedStore, When, by_worker, having
from tests.races.kit import CHAT, calls, engine_on, log_of, settled, sound, texts, types_of, until

APPENDS: dict[str, When] = {
    "acquire": lambda append: by_worker(append) and having("acquired")(append),
    "result": having("tool_result_recorded"),
    "step": having("step_committed"),
    "finish": having("turn_finished"),
}

STORY = ["user: Look", "assistant: call look", "tool: result seen", "assistant: Seen."]


async def story(store: Store, gated: GatedStore) -> None:
    """One turn with a tool, its message sent by another process; each model call and tool runs once."""
    ran: list[str] = []

    @tool(crash="report")
    def look() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    provider = ScriptedProvider([calls("look"), turn("Seen.")])
    async with (
        engine_on(GatedStore(store), [], worker=False) as other,
        engine_on(gated, provider, tools=[look]) as engine,
    ):
        await other.create_chat("helper", "Look", chat_id=CHAT)
        state = await settled(engine)
    assert texts(state) == STORY
    assert len(provider.requests) == 2
    assert ran == ["look"]
    log = await sound(store)
    assert [r.event.type for r in log] == [
        "chat_created",
        "acquired",
        "policy_recorded",
        "attempt_started",
        "step_committed",
        "attempt_started",
        "tool_result_recorded",
        "step_committed",
        "attempt_started",
        "step_committed",
        "turn_finished",
    ]


@pytest.mark.parametrize("effect", [True, False], ids=["took effect", "did not"])
@pytest.mark.parametrize("which", APPENDS)
async def test_a_worker_whose_reply_is_lost_asks_the_log_and_goes_on(any_base: Store, which: str, effect: bool) -> None:
    gated = GatedStore(any_base)
    lost = gated.lose("append", APPENDS[which], effect=effect)
    await story(any_base, gated)
    assert lost.happened == 1


@pytest.mark.parametrize("effect", [True, False], ids=["took effect", "did not"])
@pytest.mark.parametrize("which", APPENDS)
async def test_a_worker_asks_again_where_the_log_cannot_be_asked(any_base: Store, which: str, effect: bool) -> None:
    gated = GatedStore(any_base)
    lost = gated.lose("append", APPENDS[which], effect=effect)
    unasked = gated.away("find_command", times=2)
    await story(any_base, gated)
    assert (lost.happened, unasked.happened) == (1, 2 if effect else unasked.happened)
    assert unasked.happened >= 1


async def test_a_reply_lost_and_a_command_in_between(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with (
        engine_on(gated, ["One.", "Two."]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        lost = gated.lose("append", having("step_committed"))
        asked = gated.hold("find_command")
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await asked.arrived()
        assert (await types_of(any_base))[-1] == "turn_finished"
        await other.send_message(CHAT, "And now?")
        asked.open()
        await settled(engine)
        await until(lambda: engine.worker is not None and not engine.worker.running)
        state = await settled(engine)
    assert lost.happened == 1
    assert texts(state) == ["user: Hello", "assistant: One.", "user: And now?", "assistant: Two."]
    await sound(any_base)


@pytest.mark.parametrize("effect", [True, False], ids=["took effect", "did not"])
async def test_a_send_whose_reply_is_lost_is_resolved_from_the_log(any_base: Store, effect: bool) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi.", "Well."]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        gated.lose("append", having("message_sent"), effect=effect)
        receipt = await engine.send_message(CHAT, "How are you?", command_id="s1")
        assert not receipt.repeated
        state = await settled(engine)
        assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
        again = await engine.send_message(CHAT, "How are you?", command_id="s1")
        assert (again.repeated, again.messages) == (True, receipt.messages)
    await sound(any_base)


@pytest.mark.parametrize("effect", [True, False], ids=["took effect", "did not"])
async def test_a_caller_who_learns_nothing_repeats_the_command(any_base: Store, effect: bool) -> None:
    gated = GatedStore(any_base)
    provider = ScriptedProvider(["Hi.", "Well."])
    async with engine_on(gated, provider) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        gated.lose("append", having("message_sent"), effect=effect)
        unasked = gated.away("find_command", times=1)
        with pytest.raises(StoreError):
            await engine.send_message(CHAT, "How are you?", command_id="s1")
        assert unasked.happened == 1
        receipt = await engine.send_message(CHAT, "How are you?", command_id="s1")
        assert receipt.repeated is effect
        # The append that nobody knew of took the chat for this worker: it must run without waiting for a heartbeat.
        state = await settled(engine)
        with pytest.raises(IdempotencyConflict):
            await engine.send_message(CHAT, "Something else", command_id="s1")
    assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
    assert len(provider.requests) == 2
    assert [r.event.type for r in await log_of(any_base)].count("message_sent") == 1
    await sound(any_base)


async def test_a_create_whose_reply_is_lost_gives_one_chat(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi."]) as engine:
        gated.lose("append", having("chat_created"))
        gated.away("find_command", times=1)
        with pytest.raises(StoreError):
            await engine.create_chat("helper", "Hello", owner="ann", command_id="c1")
        receipt = await engine.create_chat("helper", "Hello", owner="ann", command_id="c1")
        assert receipt.repeated
        await settled(engine, receipt.chat)
        assert len(await engine.list_chats()) == 1
    await sound(any_base, receipt.chat)


async def test_a_write_that_lands_after_the_log_was_asked_loses_or_wins_whole(base: Store) -> None:
    """The append whose reply was lost is still on its way when the log is asked, and lands before the next try."""
    gated = GatedStore(base)
    async with engine_on(gated, ["Hi.", "Well."]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        gated.lose("append", having("message_sent"), effect=False, error=OutcomeUnknown)
        asked = gated.hold("find_command", after=True)
        sending = engine.send_message(CHAT, "How are you?", command_id="s1")
        import asyncio

        task = asyncio.create_task(sending)
        await asked.arrived()
        await base.append(gated.tried[-1])
        asked.open()
        receipt = await task
        assert receipt.repeated
        state = await settled(engine)
    assert texts(state)[2:] == ["user: How are you?", "assistant: Well."]
    assert [r.event.type for r in await log_of(base)].count("message_sent") == 1
    await sound(base)
