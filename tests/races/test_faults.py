"""One chat's fault is that chat's alone: it is left alone for a while, and the worker and the other chats go on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from chatfold.engine import Engine
from events.envelope import StoredEvent
from events.ids import ChatId
from events.values import Limits as Sizes
from generation.agents import Limits
from generation.faults import LONGEST_DELAY, ChatFaults
from generation.parts import PartBuffer
from generation.prompt_types import ModelRequest
from generation.providers.script import Turn, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool
from generation.worker import Worker
from store.contract import LoadedHeader, NewEvent, Store
from store.schema import READER_LEVEL
from tests.races.gates import GatedStore, having, types
from tests.races.kit import (
    CHAT,
    ManualClock,
    Stop,
    calls,
    engine_on,
    log_of,
    reached,
    settled,
    sound,
    texts,
    types_of,
    until,
)

SMALL = Sizes(message_bytes=15000)
"""A tool's long result is over it, all else is under it."""


class DamagedStore(GatedStore):
    """Gives some chats back as something that nobody can read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.no_control: set[str] = set()
        self.no_facts: set[str] = set()

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        loaded = await super().load_header(chat)
        if loaded is None or chat not in self.no_control:
            return loaded
        return replace(loaded, header=replace(loaded.header, control=b'{"'))

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        events = await super().read_events(chat, after=after, upto=upto, limit=limit, content=content)
        return [replace(event, facts=b"{}") for event in events] if chat in self.no_facts else events


class Boot:
    """The clock of back-offs and leases."""

    def __init__(self, engine: Engine) -> None:
        self.seconds = 1000.0
        engine.runtime.boot = lambda: self.seconds


def worker_of(engine: Engine) -> Worker:
    assert engine.worker is not None
    return engine.worker


async def look(engine: Engine) -> None:
    """Have the worker look for due chats, and wait until it has."""
    worker = worker_of(engine)
    worker._acquirer.wake.set()
    await until(lambda: not worker._acquirer.wake.is_set())
    await worker._acquirer.look()


async def test_a_result_that_cannot_be_recorded_is_an_error_in_its_place(any_base: Store) -> None:
    """It came while another call still ran; the tools run once."""
    stop, ran = Stop(), []

    async def deep() -> object:
        ran.append("deep")
        return "x" * 20_000

    async def slow() -> str:
        ran.append("slow")
        await stop.here()
        return "done"

    tools = [Tool.from_function(deep, crash="rerun"), Tool.from_function(slow, crash="rerun")]
    gated = GatedStore(any_base)
    async with engine_on(gated, [calls("deep", "slow"), "Well."], tools=tools) as engine:
        engine.runtime.journal._limits = SMALL
        await engine.create_chat("helper", "Go", chat_id=CHAT)
        await stop.arrived()
        await until(lambda: any("tool_result_recorded" in types(append) for append in gated.written))
        stop.go()
        state = await settled(engine)
    assert sorted(ran) == ["deep", "slow"]
    assert texts(state)[-1] == "assistant: Well."
    [result] = [text for text in texts(state) if "cannot be recorded" in text]
    assert result.startswith("tool: result The tool ran, but its result cannot be recorded")
    await sound(any_base)


async def test_a_last_result_that_cannot_be_recorded_does_not_fail_the_turn(base: Store) -> None:
    async def bad() -> object:
        return "x" * 20_000

    async with engine_on(GatedStore(base), [calls("bad"), "Well."], tools=[Tool.from_function(bad)]) as engine:
        engine.runtime.journal._limits = SMALL
        await engine.create_chat("helper", "Go", chat_id=CHAT)
        state = await settled(engine)
    assert texts(state)[-1] == "assistant: Well."
    assert any("cannot be recorded" in text for text in texts(state))
    await sound(base)


async def test_the_third_runner_that_dies_on_a_history_fails_the_turn(any_base: Store) -> None:
    gated, provider = GatedStore(any_base), ScriptedProvider(lambda _: "Hi.")
    died = gated.lose("append", having("step_committed"), effect=False, error=RuntimeError, times=3)
    engine = engine_on(gated, provider)
    boot = Boot(engine)
    async with engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        for deaths in (1, 2):
            await until(lambda deaths=deaths: died.happened == deaths)  # type: ignore[misc]
            await reached(engine, lambda state: state.control.status == "pending")
            await look(engine)
            assert worker_of(engine).running == (), "it is left alone for a while"
            assert died.happened == deaths
            boot.seconds += LONGEST_DELAY
            worker_of(engine)._acquirer.wake.set()
        state = await settled(engine)
        assert state.control.status == "error"
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "worker_lost"
        assert len(provider.requests) == 3
        await engine.resume(CHAT)
        assert texts(await settled(engine))[-1] == "assistant: Hi."
    assert (await types_of(any_base)).count("released") == 2
    await sound(any_base)


async def test_a_chat_whose_runner_dies_is_interrupted_all_the_same(base: Store) -> None:
    gated, stop = GatedStore(base), Stop()

    async def work() -> str:
        await stop.here()
        return "done"

    died = gated.lose("append", having("interruption_finished"), effect=False, error=RuntimeError, times=1)
    async with engine_on(gated, [calls("work")], tools=[Tool.from_function(work)]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        await engine.interrupt(CHAT)
        state = await settled(engine)
    assert died.happened == 1
    assert state.control.status == "waiting"
    assert (await types_of(base))[-1] == "interruption_finished"
    await sound(base)


@pytest.mark.parametrize("start", [True, False], ids=["at the start", "later"])
async def test_chats_that_cannot_be_read_hold_nobody_up(any_base: Store, start: bool) -> None:
    damaged = DamagedStore(any_base)
    damaged.no_facts = {"a", "b"}
    engine = engine_on(damaged, lambda _: "Hi.", capacity=1)
    Boot(engine)
    async with engine_on(GatedStore(any_base), [], worker=False) as other:

        async def create_all() -> None:
            for name in ("a", "b", CHAT):
                await other.create_chat("helper", "Hello", chat_id=name)

        if start:
            await create_all()
        async with engine:
            if not start:
                await create_all()
            assert texts(await settled(engine))[-1] == "assistant: Hi."
            assert set(worker_of(engine)._faults.held_back()) == {"a", "b"}
            await engine.create_chat("helper", "Hello", chat_id="new")
            await settled(engine, "new")
            assert not any(loop.done() for loop in worker_of(engine)._loops)
    await sound(any_base)


async def test_an_expiry_that_fails_is_that_chats_alone(base: Store, clock: ManualClock) -> None:
    damaged = DamagedStore(base)
    asking = Tool(name="ask", description="Ask.", schema={"type": "object", "properties": {}}, runner="client")

    def answer(request: ModelRequest) -> Turn:
        return calls("ask") if len(request.messages) == 1 else turn("Well.")

    engine = engine_on(damaged, answer, tools=[asking], limits=Limits(action_timeout=30))
    Boot(engine)
    async with engine:
        for name in ("a", "b"):
            await engine.create_chat("helper", "Hello", chat_id=name)
            await reached(engine, lambda state: state.control.status == "requires_action", name)
        damaged.no_control = {"a"}
        engine.runtime.journal.warm.drop(ChatId("a"))  # what this process knows of it serves as well
        clock.advance(60)
        worker_of(engine)._acquirer.wake.set()
        assert (
            texts(await reached(engine, lambda state: state.control.status == "waiting", "b"))[-1] == "assistant: Well."
        )
        assert worker_of(engine)._faults.held_back() == ("a",)
        assert not any(loop.done() for loop in worker_of(engine)._loops)
        damaged.no_control = set()
    await sound(base, "b")


async def test_a_stray_that_cannot_be_read_does_not_end_the_beat(base: Store) -> None:
    gated = DamagedStore(base)
    async with engine_on(gated, lambda _: "Hi.") as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        await until(lambda: worker_of(engine).running == ())
        for name in ("a", "b"):
            held = gated.hold("append", having("chat_created", "acquired"), after=True)
            creating = asyncio.create_task(engine.create_chat("helper", "Hello", chat_id=name))
            await held.arrived()
            creating.cancel()
            await asyncio.wait({creating})
        gated.no_control = {"a"}
        await worker_of(engine)._strays.find()
        assert texts(await settled(engine, "b"))[-1] == "assistant: Hi."
        assert worker_of(engine)._faults.held_back() == ("a",)
        gated.no_control = set()
    await sound(base, "b")


async def test_a_chat_of_a_newer_release_takes_commands_and_is_not_run(any_base: Store) -> None:
    async with engine_on(GatedStore(any_base), lambda _: "Hi.") as engine:
        await engine.create_chat("helper", "Hello", chat_id="old")
        await settled(engine, "old")
        await until(lambda: worker_of(engine).running == ())
        await import_newer(any_base, "old", CHAT)
        receipt = await engine.send_message(CHAT, "How are you?")
        assert receipt.status == "pending"
        await look(engine)
        assert worker_of(engine).running == ()
        assert (await engine.state(CHAT)).control.status == "pending"
    loaded = await any_base.load_header(ChatId(CHAT))
    assert loaded is not None
    assert loaded.header.reader_level == READER_LEVEL + 1
    assert len(await log_of(any_base)) == receipt.version


async def import_newer(store: Store, source: str, chat: str) -> None:
    """Copy a chat as one that a newer release wrote."""
    loaded = await store.load_header(ChatId(source))
    assert loaded is not None
    events = [NewEvent(stored=stored) for stored in await store.read_events(ChatId(source))]
    header = replace(loaded.header, chat=ChatId(chat), reader_level=READER_LEVEL + 1)
    assert await store.import_chat(header, events, {})


async def test_a_beat_drops_old_live_parts(base: Store) -> None:
    engine, now = engine_on(GatedStore(base), ["Hi."], lease=0.3), [0.0]
    engine.runtime.parts = PartBuffer(lambda: now[0])
    async with engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        assert len(engine.runtime.parts) == 1
        now[0] = 1000.0
        await until(lambda: len(engine.runtime.parts) == 0)


def test_a_chat_is_left_alone_for_longer_each_time() -> None:
    now = [0.0]
    faults = ChatFaults(lambda: now[0])
    chat = ChatId(CHAT)
    assert [faults.note(chat) for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert not faults.died(chat)
    assert faults.note(chat, died=True) == 60
    assert faults.died(chat)
    faults.counted(chat, 1)
    assert not faults.died(chat), "its log tells of it now"
    assert faults.held_back() == (chat,)
    now[0] = 60.0
    assert not faults.holds_back(chat)
    faults.forgive(chat)
    assert faults.note(chat) == 1
    now[0] = 1000.0
    assert faults.note(ChatId("other")) == 1
    assert faults.note(chat) == 1, "what is long past is forgotten"
