"""Model calls that do not end in their time though they were cancelled: what they had said is kept where it counts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from events.ids import ChatId
from events.messages import Usage
from events.vocabulary import RetryScheduled
from generation import flushing, runner
from generation.errors import ClassifiedError
from generation.prompt_types import ModelRequest
from generation.providers.contract import Finish, StreamPart, TextDelta, UsageSoFar
from generation.providers.script import Fail, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import tool
from store.contract import Store
from tests.races.gates import PATIENCE, GatedStore, having
from tests.races.kit import CHAT, Stop, calls, engine_on, settled, sound, texts, until
from tests.races.test_stopping import Stubborn

KEPT = ["user: Hello", "assistant: One (interrupted)"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for the second to pass."""
    monkeypatch.setattr(runner, "_UNWINDING", 0.0)
    for name, seconds in (("PERIOD", 0.0), ("SETTLED", 0.0), ("PAUSE", 0.001)):
        monkeypatch.setattr(flushing, name, seconds)


async def test_an_interrupt_keeps_what_a_call_had_said_that_does_not_end(any_base: Store) -> None:
    provider = Stubborn(silent=True)
    async with engine_on(GatedStore(any_base), provider, grace=0.01) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await asyncio.wait_for(provider.begun.wait(), PATIENCE)
        flusher = engine.runtime.flusher
        await until(lambda: not flusher._waiting and not flusher._under_way)
        assert await any_base.read_partials(ChatId(CHAT))
        await engine.interrupt(CHAT)
        state = await settled(engine)
        assert not await any_base.read_partials(ChatId(CHAT))
        provider.end.set()
    assert texts(state) == KEPT
    await sound(any_base)


async def test_an_interrupt_keeps_what_was_said_while_a_flush_hangs_and_hands_nothing_over_any_more(
    any_base: Store,
) -> None:
    stop, gated = Stop(), GatedStore(any_base)
    held = gated.hold("write_partials")
    async with engine_on(gated, [turn("One", stop.at())], grace=0.01) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        await held.arrived()
        await engine.interrupt(CHAT)
        state = await settled(engine)
        assert not engine.runtime.flusher._waiting
        held.open()
    assert texts(state) == KEPT
    assert not await any_base.read_partials(ChatId(CHAT))
    await sound(any_base)


@pytest.mark.parametrize(("end", "kept"), [("fails", "One (interrupted)"), ("is whole", "One")])
async def test_an_interrupt_keeps_an_answer_whose_last_write_is_still_waited_for(
    any_base: Store, end: str, kept: str
) -> None:
    stop, gated = Stop(), GatedStore(any_base)
    held = gated.hold("write_partials")
    rest = [Fail(ClassifiedError(kind="overloaded", message="Busy.", retryable=True))] if end == "fails" else []
    async with engine_on(gated, [turn("One", stop.at(), *rest)]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await stop.arrived()
        await held.arrived()
        stop.go()
        await until(lambda: not engine.runtime.flusher._waiting)
        await engine.interrupt(CHAT)
        state = await settled(engine)
        held.open()
    assert texts(state) == ["user: Hello", f"assistant: {kept}"]
    await sound(any_base)


class HangsAtTheEnd(ScriptedProvider):
    """Its stream does not close."""

    def __init__(self) -> None:
        super().__init__()
        self.end = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        self.requests.append(request)
        if len(self.requests) > 1:
            yield TextDelta(block=0, text="Whole.")
            yield Finish(reason="stop", usage=Usage())
            return
        try:
            yield TextDelta(block=0, text="One")
            await self.end.wait()
        finally:
            while not self.end.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await self.end.wait()


class HangsOnce(Stubborn):
    """Its first stream is silent and swallows its cancellation."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart | UsageSoFar]:  # type: ignore[override]
        self.requests.append(request)
        if len(self.requests) == 1:
            async for part in super().stream(request):
                yield part
        yield TextDelta(block=0, text="Whole.")
        yield Finish(reason="stop", usage=Usage())


@pytest.mark.parametrize("where", ["in its stream", "in closing it"])
async def test_a_provider_that_is_silent_and_hangs_does_not_keep_its_chat(any_base: Store, where: str) -> None:
    """It was cancelled for its silence, by nobody's wish: the attempt has failed, and is tried again."""
    provider = HangsOnce(silent=True) if where == "in its stream" else HangsAtTheEnd()
    async with engine_on(GatedStore(any_base), provider, grace=0.01, silence_timeout=0.05) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        state = await settled(engine)
        provider.end.set()
    assert texts(state) == ["user: Hello", "assistant: Whole."]
    retries = [r.event for r in await sound(any_base) if isinstance(r.event, RetryScheduled)]
    assert [retry.error.kind for retry in retries] == ["stream_silence_timeout"]


async def test_a_result_whose_reply_comes_after_the_next_effect_began_is_not_gone_back_to(any_base: Store) -> None:
    """An edit ended the tools while the reply was waited for: what the runner knows by now is newer."""
    tools, answer, gated = Stop(), Stop(), GatedStore(any_base)

    @tool(crash="rerun")
    def look() -> str:
        """Look."""
        return "seen"

    @tool(crash="rerun")
    async def stare() -> str:
        """Take long."""
        await tools.here()
        return "seen"

    script = [calls("look", "stare"), turn("Whole.", answer.at())]
    async with (
        engine_on(gated, script, tools=[look, stare], grace=0.01) as engine,
        engine_on(GatedStore(any_base), [], worker=False) as other,
    ):
        held = gated.hold(when=having("tool_result_recorded"), after=True)
        created = await engine.create_chat("helper", "Look", chat_id=CHAT)
        await held.arrived()
        await tools.arrived()
        await other.edit_message(CHAT, created.messages[0], "Answer")
        await answer.arrived()
        left_behind = [task for task in asyncio.all_tasks() if "_telling" in repr(task.get_coro())]
        held.open()
        await asyncio.wait(left_behind, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        answer.go()
        state = await settled(engine)
    assert texts(state) == ["user: Answer", "assistant: Whole."]
    await sound(any_base)
