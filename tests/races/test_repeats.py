"""The same command id: the same receipt and no new events for the same content, a conflict for other content."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from chatfold.engine import Engine
from chatfold.receipts import Receipt
from chatstate.errors import IdempotencyConflict, QueueFull, Refusal
from generation.providers.script import turn
from generation.tools.contract import Tool
from store.contract import Store
from tests.races.gates import GatedStore, having
from tests.races.kit import CHAT, Stop, calls, engine_on, log_of, reached, settled, sound, texts, until

ASK = Tool(name="ask", description="Ask.", schema={"type": "object", "properties": {}}, runner="client")

Give = Callable[[Engine, str], Awaitable[Receipt]]


def same(first: Receipt, again: Receipt) -> bool:
    """Whether a repeat is the first receipt again."""
    assert not first.repeated
    return again == replace(first, repeated=True)


async def repeated(store: Store, engine: Engine, give: Give, chat: str = CHAT) -> Receipt:
    first = await give(engine, "same")
    await settled(engine, first.chat)
    await until(lambda: engine.worker is None or not engine.worker.running)
    before = await log_of(store, first.chat)
    again = await give(engine, "same")
    assert same(first, again)
    await until(lambda: engine.worker is None or not engine.worker._strays.suspects)
    assert await log_of(store, first.chat) == before
    with pytest.raises(IdempotencyConflict):
        await give(engine, "other")
    assert await log_of(store, first.chat) == before
    await sound(store, first.chat)
    return first


async def test_create(any_base: Store) -> None:
    async with engine_on(GatedStore(any_base), lambda _: "Hi.") as engine:
        given = await repeated(
            any_base, engine, lambda e, text: e.create_chat("helper", text, owner="ann", command_id="c1")
        )
        # Another owner's same id is another chat; a release is none of the caller's content.
        assert (await engine.create_chat("helper", "same", owner="bob", command_id="c1")).chat != given.chat
        engine.runtime.release = "99.0"
        assert (await engine.create_chat("helper", "same", owner="ann", command_id="c1")).repeated


@pytest.mark.parametrize("busy", ["queue", "interrupt"])
async def test_send(any_base: Store, busy: str) -> None:
    async with engine_on(GatedStore(any_base), lambda _: "Hi.") as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        await repeated(
            any_base,
            engine,
            lambda e, text: e.send_message(
                CHAT, text, busy="interrupt" if busy == "interrupt" else "queue", command_id="s1"
            ),
        )
        with pytest.raises(IdempotencyConflict):
            await engine.interrupt(CHAT, command_id="s1")


async def test_submit(any_base: Store) -> None:
    async with engine_on(GatedStore(any_base), [calls("ask"), "Thanks."], tools=[ASK]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        control = (await settled(engine)).control
        assert control.action is not None
        action, call = control.action.id, control.indexes.open_calls[0].key
        await repeated(
            any_base, engine, lambda e, text: e.submit_tool_results(CHAT, action, {call: text}, command_id="r1")
        )


async def test_fork(any_base: Store) -> None:
    async with engine_on(GatedStore(any_base), lambda _: "Hi.") as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        first = await engine.fork(CHAT, title="A copy", command_id="f1")
        # The origin goes on; the fork that was made stays what it is.
        await engine.send_message(CHAT, "More")
        await settled(engine)
        again = await engine.fork(CHAT, title="A copy", command_id="f1")
        assert same(first, again)
        assert len(await engine.list_chats()) == 2
        with pytest.raises(IdempotencyConflict):
            await engine.fork(CHAT, title="Another", command_id="f1")
    await sound(any_base, first.chat)


async def test_edit_resume_and_metadata(any_base: Store) -> None:
    async with engine_on(GatedStore(any_base), lambda _: "Hi.") as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        first = await repeated(any_base, engine, lambda e, text: e.edit_message(CHAT, "1.0", text, command_id="e1"))
        # The message that it replaced is no more; a repeat is no refusal for that.
        assert (await engine.edit_message(CHAT, "1.0", "same", command_id="e1")).messages == first.messages
        await repeated(any_base, engine, lambda e, text: e.set_title(CHAT, text, command_id="t1"))
        await repeated(any_base, engine, lambda e, text: e.set_model(CHAT, f"scripted/{text}", command_id="m1"))


async def test_a_send_that_was_taken_before_the_queue_was_full(any_base: Store) -> None:
    stop = Stop()
    async with engine_on(GatedStore(any_base), [turn("Hi.", stop.at())], queue_limit=1) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        first = await engine.send_message(CHAT, "One", command_id="s1")
        before = await log_of(any_base)
        with pytest.raises(QueueFull):
            await engine.send_message(CHAT, "Two", command_id="s2")
        assert same(first, await engine.send_message(CHAT, "One", command_id="s1"))
        with pytest.raises(IdempotencyConflict):
            await engine.send_message(CHAT, "Two", command_id="s1")
        # A refused command wrote nothing: its id is free.
        with pytest.raises(QueueFull):
            await engine.send_message(CHAT, "Another", command_id="s2")
        assert await log_of(any_base) == before
        # Once archived or not, answered or not: the receipt of what was done is given again.
        await engine.interrupt(CHAT)
        await reached(engine, lambda state: not state.control.queue)
        assert same(first, await engine.send_message(CHAT, "One", command_id="s1"))
    await sound(any_base)


async def test_a_command_is_repeated_in_an_archived_chat(any_base: Store) -> None:
    async with engine_on(GatedStore(any_base), lambda _: "Hi.") as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        first = await engine.send_message(CHAT, "More", command_id="s1")
        await settled(engine)
        await engine.archive(CHAT, command_id="a1")
        assert same(first, await engine.send_message(CHAT, "More", command_id="s1"))
        assert (await engine.archive(CHAT, command_id="a1")).repeated
        with pytest.raises(Refusal):
            await engine.send_message(CHAT, "More", command_id="s2")
        assert (await engine.state(CHAT)).control.archived
    await sound(any_base)


@pytest.mark.parametrize("content", ["same", "other"])
async def test_two_at_once_under_one_id(any_base: Store, content: str) -> None:
    gated = GatedStore(any_base)
    async with (
        engine_on(gated, [], worker=False) as first,
        engine_on(GatedStore(any_base), [], worker=False) as second,
    ):
        await first.create_chat("helper", "Hello", chat_id=CHAT)
        held = gated.hold("append", having("message_sent"))
        sending = asyncio.create_task(first.send_message(CHAT, "same", command_id="s1"))
        await held.arrived()
        winner = await second.send_message(CHAT, content, command_id="s1")
        held.open()
        if content == "same":
            assert same(winner, await sending)
        else:
            with pytest.raises(IdempotencyConflict):
                await sending
        state = await first.state(CHAT)
    assert len(state.control.queue) == 1
    assert texts(state) == ["user: Hello"]
    await sound(any_base)
    assert replace(winner, repeated=True) != winner
