"""A context source that never answers: its turn fails, in the end, as with one that raises. By a clock that jumps."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, cast

import pytest

from chatfold import Agent, Engine, Settings
from chatfold.testing import ScriptedProvider, turn
from chatfold.virtual.loop import SimulatedLoop
from events.control import Control
from events.ids import ChatId
from events.vocabulary import RetryScheduled, TurnFailed
from generation.context import Context, ContextFile
from store.memory import MemoryStore
from tests.simulation.test_loop import run

CHAT: Final = "c"


class Hangs:
    """A source that hangs a number of times, and notes when it was asked and when it was cancelled."""

    name = "hanging"
    revision = "1"

    def __init__(self, times: int, ends: Callable[[], None] | None = None) -> None:
        self.times = times
        self.asked: list[float] = []
        self.cancelled: list[float] = []
        self._ends = ends

    async def collect(self, chat: ChatId) -> Context:
        del chat
        loop = asyncio.get_running_loop()
        self.asked.append(loop.time())
        if len(self.asked) > self.times:
            return Context(files=(ContextFile(path="AGENTS.md", text="Late, but here."),), revision="1")
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(loop.time())
                if self._ends is None:
                    raise
                self._ends()


def played(source: Hangs, seconds: float = 3600.0) -> tuple[list[RetryScheduled | TurnFailed], Control]:
    """One turn of a chat with a source, under settings as they come; its failures, and how it stands at the end."""
    found: list[tuple[list[RetryScheduled | TurnFailed], Control]] = []

    async def program(_: SimulatedLoop) -> None:
        agent = Agent(name="helper", model="scripted/m", context=source)
        model = ScriptedProvider([turn("Hi.")])
        settings = Settings(lease=600.0, poll=60.0)
        async with Engine(MemoryStore(), [agent], providers={"scripted": model}, settings=settings) as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(engine.settled(CHAT), seconds)
            log = [each.event for each in await engine.events(CHAT)]
            control = (await engine.state(CHAT)).control
            found.append(([event for event in log if isinstance(event, RetryScheduled | TurnFailed)], control))

    run(program)
    return found[0]


def test_a_source_that_hangs_is_cancelled_and_asked_again() -> None:
    source = Hangs(2)
    failures, control = played(source)
    assert [round(until - since) for since, until in zip(source.asked, source.cancelled, strict=False)] == [60, 60]
    assert [(each.error.kind, each.error.message.value) for each in failures] == [
        ("timeout", "The context source hanging gave nothing in 60 seconds.")
    ] * 2
    assert control.status == "waiting"


def swallow() -> None:
    """End not at all."""


def fail() -> None:
    """End in another way."""
    raise ValueError("cancelled in the middle")


@pytest.mark.parametrize("ends", [swallow, fail])
def test_whatever_it_makes_of_its_cancellation(ends: Callable[[], None]) -> None:
    source = Hangs(1, ends)
    failures, control = played(source)
    assert [each.error.kind for each in failures] == ["timeout"]
    assert 60 <= source.asked[1] - source.asked[0] <= 60 + 5 + 2
    assert control.status == "waiting"


def test_one_that_never_answers_fails_the_turn() -> None:
    failures, control = played(Hangs(100), 24 * 3600.0)
    assert isinstance(failures[-1], TurnFailed)
    assert failures[-1].error.kind == "timeout"
    assert control.status == "error"


class Forgets(Hangs):
    """A source that gives something else than a context a number of times."""

    def __init__(self, times: int, given: object) -> None:
        super().__init__(0)
        self.left = times
        self.given = given

    async def collect(self, chat: ChatId) -> Context:
        self.left -= 1
        return cast("Context", self.given) if self.left >= 0 else await super().collect(chat)


@pytest.mark.parametrize(("given", "named"), [(None, "NoneType"), ([], "list"), ("text", "str")])
def test_a_source_that_gives_no_context_is_asked_again_and_told_so(given: object, named: str) -> None:
    (failed,), control = played(Forgets(1, given))
    assert isinstance(failed, RetryScheduled)
    assert failed.error.message.text == f"The context source hanging failed: it must return a Context, not {named}."
    assert control.status == "waiting"
    *_, last = played(Forgets(1000, given), 1e6)[0]
    assert isinstance(last, TurnFailed)
    assert f"it must return a Context, not {named}." in last.error.message.text
