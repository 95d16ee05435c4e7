"""What a lost worker had streamed: kept where the turn ends, void where it is tried again, and never there twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from chatfold import EventItem, PartItem, PreviewReset
from chatfold.engine import Engine
from chatfold.stream import StreamItem
from chatstate.handlers.worker import TAKEOVER_LIMIT
from events.ids import ChatId
from events.vocabulary import AttemptStarted, InterruptionFinished, TurnFailed
from generation import flushing
from generation.errors import ClassifiedError
from generation.providers.script import Fail, Turn, UseTool, turn
from store.contract import Store
from tests.races.gates import GatedStore, having
from tests.races.kit import CHAT, Stop, engine_on, reached, settled, sound, texts, until


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the second to pass: how long text waits is tested with the flusher."""
    for name, seconds in (("PERIOD", 0.0), ("SETTLED", 0.0), ("PAUSE", 0.001)):
        monkeypatch.setattr(flushing, name, seconds)


async def kept_chunks(store: Store) -> int:
    return len(await store.read_partials(ChatId(CHAT)))


async def flushed(engine: Engine) -> None:
    """Wait until the store has all that came."""
    flusher = engine.runtime.flusher
    await until(lambda: not flusher._waiting and not flusher._under_way)


async def die(base: Store, engine: Engine) -> None:
    """Let an engine's lease be dead; it does not know, as a process that was killed."""
    assert engine.worker is not None
    await base.forget_worker(engine.worker.worker)


@asynccontextmanager
async def dead_in_mid_answer(base: Store) -> AsyncIterator[Engine]:
    """A chat whose answer came half before its worker died; gives an engine without a worker."""
    async with lost_worker(base) as lost, engine_on(GatedStore(base), [], worker=False) as other:
        await die(base, lost)
        yield other


@asynccontextmanager
async def lost_worker(base: Store, *, deaf: bool = True) -> AsyncIterator[Engine]:
    """An engine whose answer came half and will not go on; it hears of nothing if it is deaf."""
    stop, gated = Stop(), GatedStore(base)
    gated.deaf = deaf
    async with engine_on(gated, [turn("Half an answer", UseTool("look"), stop.at())]) as lost:
        await lost.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        await flushed(lost)
        yield lost


KEPT = [
    "user: Hello",
    "assistant: Half an answer + call look (interrupted)",
    "tool: result not_started",
]


async def _interrupt(engine: Engine) -> None:
    await engine.interrupt(CHAT)


async def _send(engine: Engine) -> None:
    await engine.send_message(CHAT, "Now this", busy="interrupt")


async def _promote(engine: Engine) -> None:
    await engine.send_message(CHAT, "Now this")
    await engine.promote_queued(CHAT, (await engine.state(CHAT)).control.queue[0].id)


@pytest.mark.parametrize("command", [_interrupt, _send, _promote])
async def test_a_command_that_ends_a_dead_holders_turn_keeps_what_it_had_streamed(
    any_base: Store, command: Callable[[Engine], Awaitable[None]]
) -> None:
    async with dead_in_mid_answer(any_base) as other:
        await command(other)
        state = await other.state(CHAT)
    assert texts(state)[:3] == KEPT
    assert state.control.status == ("waiting" if command is _interrupt else "pending")
    assert await kept_chunks(any_base) == 0
    await sound(any_base)


async def test_an_interrupt_that_comes_after_a_takeover_does_not_commit_the_dead_ones_answer(any_base: Store) -> None:
    """The interrupt was decided on the dead holder's attempt, and another worker came first."""
    async with dead_in_mid_answer(any_base):
        slow, stop = GatedStore(any_base), Stop()
        held = slow.hold("append", having("turn_interrupted"))
        async with engine_on(slow, [], worker=False) as late:
            interrupting = asyncio.create_task(late.interrupt(CHAT))
            await held.arrived()
            async with engine_on(GatedStore(any_base), [turn("Another", stop.at())]) as second:
                await stop.arrived()
                held.open()
                await interrupting
                state = await settled(second)
    assert texts(state) == ["user: Hello", "assistant: Another (interrupted)"]
    log = await sound(any_base)
    assert [r.event.type for r in log].count("interruption_finished") == 1
    assert await kept_chunks(any_base) == 0


async def test_a_takeover_that_finishes_an_interruption_keeps_what_was_streamed(any_base: Store) -> None:
    async with lost_worker(any_base) as lost, engine_on(GatedStore(any_base), [], worker=False) as other:
        await other.interrupt(CHAT)
        assert (await other.state(CHAT)).control.interrupting
        await die(any_base, lost)
        async with engine_on(GatedStore(any_base), []) as second:
            state = await settled(second)
    assert texts(state) == KEPT
    log = await sound(any_base)
    finished = log[-1].event
    assert isinstance(finished, InterruptionFinished)
    assert finished.report is not None
    assert finished.report.step is None
    assert finished.report.request is not None
    assert await kept_chunks(any_base) == 0


async def test_an_interrupt_keeps_what_a_runner_had_streamed_that_took_its_lease_for_lost(any_base: Store) -> None:
    """The lease was not lost after all: the chat is still this worker's, and nobody runs it."""
    async with lost_worker(any_base) as engine:
        assert engine.worker is not None
        runner = engine.worker._roster.runners[ChatId(CHAT)]
        runner.lose()
        await until(lambda: ChatId(CHAT) not in engine.worker._roster.runners)  # type: ignore[union-attr]
        await engine.interrupt(CHAT)
        state = await settled(engine)
    assert texts(state) == KEPT
    assert await kept_chunks(any_base) == 0
    await sound(any_base)


async def test_an_interrupt_that_comes_while_a_worker_lets_go_keeps_what_it_had_streamed(any_base: Store) -> None:
    stop, gated = Stop(), GatedStore(any_base)
    held = gated.hold("append", having("released"))
    async with (
        engine_on(gated, [turn("Half an answer", stop.at())]) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        leaving = asyncio.create_task(engine.__aexit__(None, None, None))
        await held.arrived()
        await other.interrupt(CHAT)
        held.open()
        await leaving
        state = await other.state(CHAT)
    assert texts(state) == ["user: Hello", "assistant: Half an answer (interrupted)"]
    await sound(any_base)


async def test_a_turn_that_lost_its_last_worker_keeps_what_that_one_had_streamed(any_base: Store) -> None:
    async with AsyncExitStack() as stack:
        for number in range(TAKEOVER_LIMIT):
            stop, gated = Stop(), GatedStore(any_base)
            gated.deaf = True
            engine = await stack.enter_async_context(engine_on(gated, [turn(f"Try {number}", stop.at())]))
            if number == 0:
                await engine.create_chat("helper", "Hello", chat_id=CHAT)
            await stop.arrived()
            await flushed(engine)
            await die(any_base, engine)
        last = await stack.enter_async_context(engine_on(GatedStore(any_base), ["Done."]))
        state = await settled(last)
        assert state.control.status == "error"
        assert state.control.last_error is not None
        assert state.control.last_error.kind == "worker_lost"
        assert texts(state) == ["user: Hello", "assistant: Try 2 (interrupted)"]
        assert await kept_chunks(any_base) == 0
        await last.resume(CHAT)
        state = await settled(last)
    assert texts(state)[2:] == ["user: Please go on.", "assistant: Done."]
    await sound(any_base)


async def test_a_retry_makes_what_was_streamed_void_and_its_cost_is_told(base: Store) -> None:
    async with lost_worker(base, deaf=False) as lost:
        seen = Watched(lost)
        await until(lambda: "Half an answ" in seen.told)
        await die(base, lost)
        async with engine_on(GatedStore(base), ["Whole."]) as second:
            state = await settled(second)
        await until(lambda: "turn_finished" in seen.told)
        await seen.stop()
    assert texts(state) == ["user: Hello", "assistant: Whole."]
    at = seen.told.index("<reset>")
    assert seen.told[at + 1] == "acquired"
    assert seen.told.index("Half an answ") < at
    starts = [r.event for r in await sound(base) if isinstance(r.event, AttemptStarted)]
    assert [start.cut is not None for start in starts] == [False, True]
    assert await kept_chunks(base) == 0


class Watched:
    """What a stream tells: texts of parts, types of events, resets."""

    def __init__(self, engine: Engine) -> None:
        self.told: list[str] = []
        self._task = asyncio.create_task(self._read(engine))

    async def _read(self, engine: Engine) -> None:
        async for item in engine.stream(CHAT):
            self.told.append(self._said(item))

    @staticmethod
    def _said(item: StreamItem) -> str:
        match item:
            case PartItem(part=part):
                return str(getattr(part, "text", ""))
            case EventItem(recorded=recorded):
                return recorded.event.type
            case PreviewReset():
                return "<reset>"

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


async def shown(engine: Engine, stop: Stop) -> Watched:
    """Watch a chat until the text before ``stop`` was shown, then let the model go on."""
    seen = Watched(engine)
    await until(lambda: "er" in seen.told)
    stop.go()
    return seen


BROKEN = ClassifiedError(kind="generic", message="The provider broke.", provider="scripted")


async def test_a_failure_with_no_retry_left_keeps_what_was_shown(any_base: Store) -> None:
    stop = Stop()
    script: list[Turn | str] = [turn("Half an answer", stop.at(), Fail(BROKEN)), "Done."]
    async with engine_on(GatedStore(any_base), script) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        seen = await shown(engine, stop)
        state = await settled(engine)
        assert state.control.status == "error"
        assert texts(state) == ["user: Hello", "assistant: Half an answer (interrupted)"]
        failed = (await sound(any_base))[-1].event
        assert isinstance(failed, TurnFailed)
        assert failed.attempt is not None
        await until(lambda: "turn_failed" in seen.told)
        assert "<reset>" not in seen.told
        await engine.resume(CHAT)
        state = await settled(engine)
        await seen.stop()
    assert texts(state)[2:] == ["user: Please go on.", "assistant: Done."]
    await sound(any_base)


async def test_what_a_provider_withheld_is_not_kept(base: Store) -> None:
    stop = Stop()
    async with engine_on(GatedStore(base), [turn("Half an answer", stop.at(), finish="refusal")]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        seen = await shown(engine, stop)
        state = await settled(engine)
        await until(lambda: "turn_failed" in seen.told)
        await seen.stop()
    assert (state.control.status, texts(state)) == ("error", ["user: Hello"])
    assert seen.told[-2:] == ["<reset>", "turn_failed"]
    await sound(base)


async def test_pieces_that_are_on_their_way_while_the_turn_ends_land_nowhere(any_base: Store) -> None:
    stop, gated = Stop(), GatedStore(any_base)
    gated.deaf = True
    held = gated.hold("write_partials")
    async with (
        engine_on(gated, [turn("Half an answer", stop.at())]) as lost,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        await lost.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        await held.arrived()
        await die(any_base, lost)
        await other.interrupt(CHAT)
        held.open()
        await until(lambda: not lost.runtime.flusher._under_way)
        assert await kept_chunks(any_base) == 0
        state = await other.state(CHAT)
    assert texts(state) == ["user: Hello"]
    await sound(any_base)


async def test_an_answer_that_is_short_costs_neither_chunks_nor_their_deletion(
    base: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flushing, "PERIOD", 60.0)
    monkeypatch.setattr(flushing, "SETTLED", 60.0)
    gated = GatedStore(base)
    async with engine_on(gated, ["Hello to you."]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
    assert [append.drop_partials for append in gated.written] == [False] * len(gated.written)


async def test_an_answer_that_was_flushed_leaves_nothing_behind(any_base: Store) -> None:
    stop, gated = Stop(), GatedStore(any_base)
    async with engine_on(gated, [turn("Hello", stop.at(), " to you.")]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        await flushed(engine)
        assert await kept_chunks(any_base) > 0
        stop.go()
        state = await reached(engine, lambda state: state.control.status == "waiting")
    assert texts(state) == ["user: Hello", "assistant: Hello +  to you."]
    assert await kept_chunks(any_base) == 0
