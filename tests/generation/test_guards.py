"""Model calls that say nothing: the first part has its time, and each part after it, by a clock that jumps.

The event loop's clock is what guards go by. Here it stands still while anything is ready and then jumps to the next
timer, so that ten minutes pass at once and a tenth of a second decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.virtual.loop import SimulatedLoop
from events.envelope import Recorded
from events.messages import Usage
from events.vocabulary import CompactionCommitted, CompactionRequested, RetryScheduled, TurnFailed
from generation.agents import Agent, Limits
from generation.prompt_types import ModelRequest
from generation.providers.contract import Finish, StreamPart, TextDelta, UsageSoFar
from generation.providers.scripted import ScriptedProvider
from store.memory import MemoryStore
from tests.simulation.test_loop import run

T = TypeVar("T")
CHAT = "chat"


def in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` on a loop, and a machine, whose clock jumps."""
    came: list[T] = []

    async def program(_: SimulatedLoop) -> None:
        came.append(await work)

    assert run(program, steps=1_000_000).failure is None
    return came[0]


class Slow(ScriptedProvider):
    """Says what a request costs at once, in one call a word after each pause, and in the other calls all at once."""

    def __init__(self, pauses: Sequence[float], *, tells_usage: bool, slow: int = 1) -> None:
        super().__init__()
        self._pauses = pauses
        self._slow = slow
        self._tells_usage = tells_usage

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        self.requests.append(request)
        if self._tells_usage:
            yield UsageSoFar(usage=Usage(input=1))
        for pause in self._pauses if len(self.requests) == self._slow else ():
            await asyncio.sleep(pause)
            yield TextDelta(block=0, text="word ")
        yield TextDelta(block=0, text="end")
        yield Finish(reason="stop", usage=Usage(input=1))


async def ask(provider: Slow, *, limits: Limits | None = None, **settings: Any) -> list[Recorded]:
    """Let the model answer once, or what its retries make of it, and return the log."""
    agent = Agent(name="helper", model="scripted/m", limits=limits or Limits())
    engine = Engine(MemoryStore(), [agent], providers={"scripted": provider}, settings=Settings(**settings))
    # Its thread would look at a real clock.
    engine.runtime.settings = replace(engine.runtime.settings, watch_loop=False)
    async with engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await engine.settled(CHAT)
        return list(await engine.events(CHAT))


def seconds_to(log: list[Recorded], event: type[object]) -> float | None:
    """Return how long the first model call took until an event; None where there is none."""
    start = next(each for each in log if each.event.type == "attempt_started")
    found = next((each for each in log if isinstance(each.event, event)), None)
    return (found.envelope.recorded_at - start.envelope.recorded_at) / 1e6 if found is not None else None


@pytest.mark.parametrize("tells_usage", [True, False])
@pytest.mark.parametrize(
    ("pauses", "given_up_at"),
    [
        ((0, 0), None),
        ((59.9,), None),
        ((60.1,), 60),
        ((599,), 60),
        ((1, 599), None),
        ((1, 601), 601),
        ((59.9, 599, 599, 599), None),
        ((0, 599, 599, 601), 599 + 599 + 600),
    ],
)
def test_the_first_part_has_a_minute_and_each_one_after_it_ten(
    pauses: tuple[float, ...], given_up_at: float | None, tells_usage: bool
) -> None:
    provider = Slow(pauses, tells_usage=tells_usage)
    log = in_virtual_time(ask(provider))
    assert seconds_to(log, RetryScheduled) == given_up_at
    assert len(provider.requests) == (1 if given_up_at is None else 2)
    assert log[-1].event.type == "turn_finished"


@pytest.mark.parametrize(
    ("pauses", "given_up_at"), [((4.9, 9.9, 9.9), None), ((5.1,), 5), ((1, 10.1), 11), ((0, 9.9, 10.1), 19.9)]
)
def test_both_are_settings(pauses: tuple[float, ...], given_up_at: float | None) -> None:
    provider = Slow(pauses, tells_usage=True)
    log = in_virtual_time(ask(provider, first_part_timeout=5.0, silence_timeout=10.0))
    assert seconds_to(log, RetryScheduled) == given_up_at


@pytest.mark.parametrize(
    ("pauses", "message", "detail"),
    [
        ((61,), "The scripted model did not begin to answer in time.", "nothing came for 60 seconds"),
        ((1, 601), "The scripted model sent no data in time.", "nothing came for 600 seconds"),
    ],
)
def test_what_is_said_of_it(pauses: tuple[float, ...], message: str, detail: str) -> None:
    (said,) = [
        each.event.error
        for each in in_virtual_time(ask(Slow(pauses, tells_usage=True)))
        if isinstance(each.event, RetryScheduled)
    ]
    assert (said.kind, said.provider, said.retryable) == ("stream_silence_timeout", "scripted", True)
    assert said.message.text == message
    assert said.detail is not None
    assert said.detail.text == detail


def test_the_last_attempt_says_how_many_there_were() -> None:
    log = in_virtual_time(ask(Slow((61,), tells_usage=True), limits=Limits(max_model_attempts=1)))
    (failed,) = [each.event for each in log if isinstance(each.event, TurnFailed)]
    assert failed.error is not None
    assert failed.error.message.text == (
        "The scripted model did not begin to answer in time. Given up after 1 attempt; try again later."
    )


@pytest.mark.parametrize(
    ("pauses", "given_up_at"), [((59.9, 599, 599, 599), None), ((60.1,), 60), ((1, 601), 601), ((0, 599, 601), 1199)]
)
def test_a_summary_has_all_the_time_that_it_is_not_silent(pauses: tuple[float, ...], given_up_at: float | None) -> None:
    provider = Slow(pauses, tells_usage=True, slow=2)

    async def compact() -> list[Recorded]:
        agent = Agent(name="helper", model="scripted/m")
        engine = Engine(MemoryStore(), [agent], providers={"scripted": provider}, settings=Settings())
        engine.runtime.settings = replace(engine.runtime.settings, watch_loop=False)
        async with engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            await engine.settled(CHAT)
            await engine.compact(CHAT)
            await engine.settled(CHAT)
            return list(await engine.events(CHAT))

    log = in_virtual_time(compact())
    asked = next(place for place, each in enumerate(log) if isinstance(each.event, CompactionRequested))
    assert seconds_to(log[asked:], RetryScheduled) == given_up_at
    took = seconds_to(log[asked:], CompactionCommitted)
    assert took is not None
    assert given_up_at is not None or took == pytest.approx(sum(pauses))
