"""Starting and stopping: what commands may do meanwhile, and that nothing is left where either is cut short."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest

from events.ids import ChatId
from generation import runner
from generation.prompt_types import ModelRequest
from generation.providers.contract import StreamPart, TextDelta, UsageSoFar
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool
from store.contract import Hint, Store
from store.errors import StoreUnavailable
from tests.races.gates import PATIENCE, GatedStore, having
from tests.races.kit import CHAT, Stop, calls, engine_on, settled, sound, texts, types_of, until
from tests.races.test_faults import worker_of


def tool_at(stop: Stop) -> Tool:
    async def work() -> str:
        await stop.here()
        return "done"

    return Tool.from_function(work)


async def test_a_stop_waits_for_no_command_that_takes_nothing(any_base: Store) -> None:
    gated, stop = GatedStore(any_base), Stop()
    async with engine_on(gated, [calls("work"), "Well."], tools=[tool_at(stop)]) as engine:
        sending = gated.hold("append", having("chat_created", "acquired"), after=True)
        creating = asyncio.create_task(engine.create_chat("helper", "Hello", chat_id=CHAT))
        await sending.arrived()
        held = gated.hold("append", having("title_changed"))
        titling = asyncio.create_task(engine.set_title(CHAT, "A talk"))
        await held.arrived()
        sending.open()
        await creating
        await stop.arrived()
        await asyncio.wait_for(worker_of(engine).stop(), PATIENCE)
        assert (await engine.state(CHAT)).control.status == "pending"
        held.open()
        await titling
    assert (await types_of(any_base))[-1] == "title_changed"
    await sound(any_base)


async def test_a_second_stop_waits_for_the_first(base: Store) -> None:
    stop = Stop()
    async with engine_on(GatedStore(base), [calls("work")], tools=[tool_at(stop)], grace=600.0) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        stops = [asyncio.create_task(worker_of(engine).stop()) for _ in range(2)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(each.done() for each in stops)
        stop.go()
        await asyncio.wait_for(asyncio.gather(*stops), PATIENCE)
    await sound(base)


async def test_a_close_that_is_cancelled_ends_all_the_same(any_base: Store) -> None:
    stop, before = Stop(), asyncio.all_tasks()
    engine = engine_on(GatedStore(any_base), [calls("work")], tools=[tool_at(stop)], grace=600.0)
    await engine.__aenter__()
    await engine.create_chat("helper", "Hello", chat_id=CHAT)
    await stop.arrived()
    worker = worker_of(engine)
    closing = asyncio.create_task(engine.__aexit__(None, None, None))
    await until(lambda: worker._roster.stopping is not None)
    closing.cancel()
    await asyncio.wait({closing}, timeout=PATIENCE)
    assert closing.cancelled()
    await until(lambda: not worker._tasks)
    await asyncio.wait_for(engine.__aexit__(None, None, None), PATIENCE)
    loaded = await any_base.load_header(ChatId(CHAT))
    assert loaded is not None
    assert loaded.header.status == "running"
    assert not loaded.holder_alive, "another worker takes it over at once"
    left = asyncio.all_tasks() - before
    assert not [task for task in left if "worker" in repr(task.get_coro()).lower()]


class NoHints(GatedStore):
    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        raise StoreUnavailable("no hints")


@pytest.mark.parametrize("fault", ["find_due", "heartbeat", "hints", "cancelled"])
async def test_a_start_that_fails_leaves_nothing_behind(base: Store, fault: str) -> None:
    gated = NoHints(base) if fault == "hints" else GatedStore(base)
    engine, before = engine_on(gated, []), asyncio.all_tasks()
    if fault == "cancelled":
        held = gated.hold("find_due")
        entering = asyncio.create_task(engine.__aenter__())
        await held.arrived()
        entering.cancel()
        await asyncio.wait({entering}, timeout=PATIENCE)
        assert entering.cancelled()
    else:
        if fault == "find_due":
            gated.away("find_due", times=1)
        elif fault == "heartbeat":
            gated.away("heartbeat", times=1)
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(engine.__aenter__(), PATIENCE)
    assert engine.worker is None
    assert not [task for task in asyncio.all_tasks() - before if "Worker" in task.get_coro().__qualname__]  # type: ignore[union-attr]


class Stubborn(ScriptedProvider):
    """Its stream takes cancellation for its own matter, and goes on."""

    def __init__(self, *, silent: bool) -> None:
        super().__init__()
        self.silent, self.begun, self.end = silent, asyncio.Event(), asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart | UsageSoFar]:  # type: ignore[override]
        yield TextDelta(block=0, text="One")
        self.begun.set()
        while not self.end.is_set():
            try:
                await self.end.wait()
            except asyncio.CancelledError:
                if not self.silent:
                    yield TextDelta(block=0, text="Two")


@pytest.mark.parametrize("silent", [False, True], ids=["goes on", "hangs"])
async def test_a_stream_that_swallows_its_cancellation_holds_nobody_up(
    base: Store, silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_UNWINDING", 0.0)
    provider = Stubborn(silent=silent)
    async with engine_on(GatedStore(base), provider, grace=0.01) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await asyncio.wait_for(provider.begun.wait(), PATIENCE)
        await engine.interrupt(CHAT)
        state = await settled(engine)
    provider.end.set()
    assert state.control.status == "waiting"
    assert texts(state)[1:] == ["assistant: One (interrupted)"]
    await sound(base)
