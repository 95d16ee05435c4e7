"""A worker process is killed while its model streams: what it had streamed is kept where the turn ends."""

from __future__ import annotations

import asyncio
import signal
import uuid

import pytest

from chatfold.testing.servers import Answer, Gate, Reasoning, Text
from chatstate.handlers.worker import TAKEOVER_LIMIT
from events.ids import ChatId
from events.vocabulary import AttemptStarted, InterruptionFinished, TurnFailed, TurnInterrupted
from tests.e2e.checks import check
from tests.e2e.kit import PATIENCE, Place, Scene, reasoning, stage, texts
from tests.e2e.test_takeover import QUICK, WorkerProcess, worker_process

LONG = "One two three four five six seven eight nine ten."


@pytest.fixture
def place(url: str) -> Place:
    """One provider is enough: chunks hold its parts in neutral form."""
    return Place(provider="anthropic", url=url, agent=f"agent-{uuid.uuid4().hex}")


def halves(gate: Gate, text: str = LONG) -> Answer:
    """An answer of which a thought and half a text come."""
    return Answer([Reasoning("Hm. "), Text(text)], gate=gate, gate_after=4)


async def killed_in_mid_answer(scene: Scene, worker: WorkerProcess, gate: Gate, chat: str) -> None:
    """Wait until the store has what the worker streamed, and kill it."""
    await gate.reached(PATIENCE)
    async with asyncio.timeout(PATIENCE):
        while not await scene.store.read_partials(ChatId(chat)):  # noqa: ASYNC110 - another process writes them
            await asyncio.sleep(0.02)
    assert await worker.end(signal.SIGKILL) == -signal.SIGKILL


async def lease_is_dead(scene: Scene, chat: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (loaded := await scene.store.load_header(ChatId(chat))) is None or loaded.holder_alive:  # noqa: ASYNC110 - time alone ends it
            await asyncio.sleep(0.02)


async def nothing_is_left(scene: Scene, chat: str) -> None:
    assert await scene.store.read_partials(ChatId(chat)) == []
    await check(scene, chat)


async def test_an_interrupt_after_the_kill_keeps_what_was_streamed(place: Place) -> None:
    gate = Gate()
    async with (
        stage(place, [halves(gate), Answer("Going on.")], worker=False, settings=QUICK) as scene,
        worker_process(scene, stop=False) as worker,
    ):
        chat = await scene.start("Count")
        await killed_in_mid_answer(scene, worker, gate, chat)
        await lease_is_dead(scene, chat)
        receipt = await scene.engine.interrupt(chat)
        assert receipt.state == "W"
        state = await scene.settled(chat)
        assert texts(state) == [LONG[:24]]
        assert [part.text.text for part in reasoning(state)] == ["Hm. "]
        interrupted = (await scene.engine.events(chat))[-1].event
        assert isinstance(interrupted, TurnInterrupted)
        assert interrupted.added[0].step is not None
        assert interrupted.added[0].step.usage.input == 10
        await nothing_is_left(scene, chat)
        gate.release()


async def test_a_takeover_that_finishes_an_interruption_keeps_what_was_streamed(place: Place) -> None:
    gate = Gate()
    async with (
        stage(place, [halves(gate), Answer("Going on.")], worker=False, settings=QUICK) as scene,
        worker_process(scene, stop=False) as first,
    ):
        chat = await scene.start("Count")
        await killed_in_mid_answer(scene, first, gate, chat)
        receipt = await scene.engine.interrupt(chat)
        if receipt.state == "I0":  # on a busy machine the lease may be over by now
            async with worker_process(scene, stop=False) as second:
                state = await scene.settled(chat)
                finished = (await scene.engine.events(chat))[-1].event
                assert isinstance(finished, InterruptionFinished)
                assert texts(state) == [LONG[:24]]
                await scene.engine.resume(chat)
                state = await scene.settled(chat)
                assert await second.end(signal.SIGTERM) == 0
            assert texts(state) == [LONG[:24], "Going on."]
        await nothing_is_left(scene, chat)
        gate.release()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_turn_that_fails_after_the_kills_keeps_what_the_last_one_streamed(place: Place) -> None:
    gates = [Gate() for _ in range(TAKEOVER_LIMIT)]
    script = [halves(gate, f"{number} {LONG}") for number, gate in enumerate(gates)]
    async with stage(place, script, worker=False, settings=QUICK) as scene:
        chat = await scene.start("Count")
        for gate in gates:
            async with worker_process(scene, stop=False) as worker:
                await killed_in_mid_answer(scene, worker, gate, chat)
        async with worker_process(scene, stop=False) as last:
            state = await scene.settled(chat, "error")
            assert await last.end(signal.SIGTERM) == 0
        events = [each.event for each in await scene.engine.events(chat)]
        failed = events[-1]
        assert isinstance(failed, TurnFailed)
        assert failed.error.kind == "worker_lost"
        assert texts(state) == [f"{TAKEOVER_LIMIT - 1} {LONG}"[:24]]
        cuts = [event.cut for event in events if isinstance(event, AttemptStarted)]
        assert [cut is not None for cut in cuts] == [False] + [True] * (TAKEOVER_LIMIT - 1)
        await nothing_is_left(scene, chat)
        for gate in gates:
            gate.release()
