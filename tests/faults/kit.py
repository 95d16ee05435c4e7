"""What the faults share: a chat in the middle of a model call, whose database fails and comes back."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.verification import verify_chat
from events.state import ChatState
from events.vocabulary import ToolResultRecorded
from generation.agents import Agent
from generation.providers.script import Say, UseTool, Wait, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import tool
from store.errors import StoreUnavailable
from tests.e2e.kit import texts
from tests.faults.disks import fill

PATIENCE: Final = 60.0
LEASE: Final = 1.0
SETTINGS: Final = Settings(lease=LEASE, poll=0.1, grace=0.2)

MOST_SHARE: Final = 0.5
"""Share of one core that an engine may use while its database is away: what turns in circles uses all of it."""


@dataclass
class Call:
    """A model call that waits until it is told to answer."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    answer: asyncio.Event = field(default_factory=asyncio.Event)
    ran: list[str] = field(default_factory=list)


@dataclass
class Scene:
    """An engine with a chat whose second model call is under way, after a tool that must not run twice."""

    engine: Engine
    chat: str
    call: Call

    async def settled(self) -> ChatState:
        """Have the call answered, and wait for the end of the turn."""
        self.call.answer.set()
        async with asyncio.timeout(PATIENCE):
            return await self.engine.settled(self.chat)


@asynccontextmanager
async def in_a_call(url: str) -> AsyncIterator[Scene]:
    """Open an engine on a database, and bring a chat into a model call that waits."""
    call = Call()

    @tool(crash="report")
    async def act() -> str:
        """Do something that must not be done twice."""
        call.ran.append("act")
        return "done"

    say = turn(Wait(until=call.answer, reached=call.begun.set), Say("All is well."))
    provider = ScriptedProvider([turn(UseTool("act")), *[say] * 20])
    agent = Agent(name="helper", model="scripted", tools=[act])
    async with Engine(url, agents=[agent], providers={"scripted": provider}, settings=SETTINGS) as engine:
        chat = (await engine.create_chat("helper", "Do it.")).chat
        async with asyncio.timeout(PATIENCE):
            await call.begun.wait()
        yield Scene(engine, chat, call)


async def check(scene: Scene) -> None:
    """See that nothing was lost, nothing was done twice, and the log is sound."""
    state = await scene.settled()
    assert state.control.status == "waiting", state.control.last_error
    assert texts(state) == ["All is well."]
    assert scene.call.ran == ["act"]
    results = [each for each in await scene.engine.events(scene.chat) if isinstance(each.event, ToolResultRecorded)]
    assert len(results) == 1
    assert (await verify_chat(scene.engine.store, scene.chat)).findings == ()


class Effort:
    """How much CPU the process used while something lasted."""

    def __init__(self) -> None:
        self._cpu, self._clock = _cpu(), time.monotonic()

    def assert_small(self) -> None:
        """See that it was a small share of the time: nothing turned in circles."""
        lasted = time.monotonic() - self._clock
        assert _cpu() - self._cpu < MOST_SHARE * max(lasted, 1.0)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def warnings(caplog: pytest.LogCaptureFixture, event: str) -> int:
    """Return how often something was logged."""
    return sum(event in record.getMessage() for record in caplog.records)


async def ride_out_a_full_disk(scene: Scene, disk: Path, why: str) -> None:
    """Fill the disk of a database: it says ``why``, costs little meanwhile, and all is well when there is space."""
    filler = fill(disk)
    effort = Effort()
    with pytest.raises(StoreUnavailable, match=why):
        await scene.engine.create_chat("helper", "Long. " * 20_000)
    scene.call.answer.set()
    await asyncio.sleep(1.5 * LEASE)
    effort.assert_small()
    filler.unlink()
    await check(scene)
