"""A clock that is put back makes nobody wait longer for a retry or a deadline. By clocks that the test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import pytest

from chatfold import Agent, Engine, Settings, client_tool
from chatfold.testing import ScriptedProvider, UseTool, turn
from chatfold.virtual.loop import SimulatedLoop
from chatstate.audit import audit
from events.envelope import Recorded
from generation.errors import ClassifiedError
from generation.providers.script import Fail, Turn
from store.contract import Header
from store.errors import StoreUnavailable
from store.memory import MemoryStore
from store.query import ChatQuery
from tests.simulation.test_loop import run

CHAT: Final = "c"
HOUR: Final = 3600.0
EPOCH: Final = 1_700_000_000.0
BEAT: Final = 5.0
BUSY: Final = turn(Fail(ClassifiedError(kind="overloaded", message="Busy.", retryable=True)))
ASK: Final = client_tool("ask", "Ask the client.", {"type": "object", "properties": {}})
SETTINGS: Final = Settings(lease=3 * BEAT, poll=1.0, model_retry_unit=60.0)


class Scene:
    """A store whose clock the test sets, and engines over it."""

    def __init__(self, loop: SimulatedLoop, script: Sequence[Turn | str]) -> None:
        self.loop = loop
        self.ahead = EPOCH
        self.store = MemoryStore(clock=lambda: round((loop.time() + self.ahead) * 1e6))
        self.model = ScriptedProvider(list(script))

    def engine(self) -> Engine:
        agent = Agent(name="helper", model="scripted/m", tools=[ASK])
        engine = Engine(self.store, [agent], providers={"scripted": self.model}, settings=SETTINGS)
        engine.runtime.settings = SETTINGS.worker_settings()
        return engine

    async def log(self, engine: Engine) -> Sequence[Recorded]:
        log = await engine.events(CHAT)
        assert [finding.problem for finding in audit(log)] == []
        return log

    async def until(self, engine: Engine, kind: str) -> float:
        """Wait for an event of a type; tells when it came."""
        async with engine.store.hints(None) as hints:
            while not any(each.event.type == kind for each in await self.log(engine)):
                await anext(hints)
        return self.loop.time()


def play(script: Sequence[Turn | str], story: Callable[[Scene], object]) -> None:
    """Run a story by virtual time."""

    async def program(loop: SimulatedLoop) -> None:
        await story(Scene(loop, script))  # type: ignore[misc]

    run(program)


@pytest.mark.parametrize("by", [HOUR, 30 * 24 * HOUR, 2.0, -HOUR], ids=["an hour", "a month", "2 s", "put forward"])
def test_a_retry_comes_in_its_time(by: float) -> None:
    async def story(scene: Scene) -> None:
        async with scene.engine() as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            began = await scene.until(engine, "retry_scheduled")
            await asyncio.sleep(20)
            scene.ahead -= by
            ended = await scene.until(engine, "turn_finished")
            if by > 0:
                assert 60 <= ended - began <= 60 + BEAT + 1
            else:
                assert ended - began <= 20 + BEAT + 1
            await scene.log(engine)

    play([BUSY, "Hi."], story)


@pytest.mark.parametrize("before", [100.0, 299.0])
def test_a_deadline_comes_in_its_time(before: float) -> None:
    """Also where the chat's last event is of long ago, and not ahead of a clock that was put back by a little."""

    async def story(scene: Scene) -> None:
        async with scene.engine() as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            began = await scene.until(engine, "action_required")
            await asyncio.sleep(before)
            scene.ahead -= 60
            ended = await scene.until(engine, "action_expired")
            assert 300 <= ended - began <= 300 + BEAT + 1
            await engine.settled(CHAT)
            await scene.log(engine)

    play([turn(UseTool("ask")), "Hi."], story)


def test_a_command_that_leaves_the_chat_waiting_leaves_its_time_too() -> None:
    async def story(scene: Scene) -> None:
        async with scene.engine() as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            began = await scene.until(engine, "retry_scheduled")
            await asyncio.sleep(40)
            scene.ahead -= 20
            await asyncio.sleep(BEAT + 1)
            await engine.set_title(CHAT, "New")
            assert await scene.until(engine, "turn_finished") - began <= 60 + BEAT + 1
            await scene.log(engine)

    play([BUSY, "Hi."], story)


def test_retries_that_follow_come_in_their_time() -> None:
    """Until its clock has caught up, all times of the chat are ahead."""

    async def story(scene: Scene) -> None:
        async with scene.engine() as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            began = await scene.until(engine, "retry_scheduled")
            scene.ahead -= HOUR
            ended = await scene.until(engine, "turn_finished")
            assert 60 + 120 + 240 <= ended - began <= 60 + 120 + 240 + 3 * (BEAT + 1)

    play([BUSY, BUSY, BUSY, "Hi."], story)


def test_who_starts_later_waits_no_longer_than_the_delay() -> None:
    async def story(scene: Scene) -> None:
        async with scene.engine() as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            await scene.until(engine, "retry_scheduled")
        scene.ahead -= HOUR
        began = scene.loop.time()
        async with scene.engine() as engine:
            assert await scene.until(engine, "turn_finished") - began <= 60 + BEAT + 1

    play([BUSY, "Hi."], story)


def test_one_that_was_set_after_the_clock_was_put_back_is_not_early() -> None:
    async def story(scene: Scene) -> None:
        async with scene.engine() as engine:
            await asyncio.sleep(BEAT + 1)
            scene.ahead -= 10.0
            await asyncio.sleep(1)
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            began = await scene.until(engine, "retry_scheduled")
            assert await scene.until(engine, "turn_finished") - began >= 60

    play([BUSY, "Hi."], story)


def test_a_chat_that_moved_on_is_not_served_by_the_time_that_it_had() -> None:
    async def story(scene: Scene) -> None:
        async with scene.engine() as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            await scene.until(engine, "retry_scheduled")
            scene.ahead -= HOUR
            await asyncio.sleep(30)
            await engine.interrupt(CHAT)
            await asyncio.sleep(200)
            assert len(scene.model.requests) == 1
            await engine.resume(CHAT)
            await engine.settled(CHAT)
            await scene.log(engine)

    play([BUSY, "Hi."], story)


class Flaky(MemoryStore):
    """Gives no list of chats for a while."""

    away = False

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        if self.away:
            raise StoreUnavailable("away")
        return await super().list_chats(query)


def test_what_a_store_that_is_away_did_not_tell_is_asked_again() -> None:
    async def story(scene: Scene) -> None:
        scene.store = store = Flaky(clock=lambda: round((scene.loop.time() + scene.ahead) * 1e6))
        async with scene.engine() as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            began = await scene.until(engine, "retry_scheduled")
            await asyncio.sleep(3 * BEAT)
            store.away = True
            scene.ahead -= HOUR
            await asyncio.sleep(2 * BEAT)
            store.away = False
            assert await scene.until(engine, "turn_finished") - began <= 60 + 6 * BEAT + 1, "from when it was found"

    play([BUSY, "Hi."], story)
