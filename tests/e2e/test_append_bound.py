"""What a turn costs: one append per effect and one for its message, and what the design allows beside."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from chatfold.engine import Engine
from chatfold.testing.servers import Answer, Fail, Gate, Reply, ToolCall
from chatfold.testing.stores import CountingStore
from events.ids import ChatId
from events.vocabulary import ActionRequired
from generation.tools.contract import Tool
from store import open_store
from tests.e2e.checks import check
from tests.e2e.kit import PATIENCE, SERVERS, SETTINGS, Place, Scene, stage
from tests.e2e.tools import ASK, Door, add


@dataclass
class Stage:
    """A scene whose stores count: that of the process that takes commands, and that of the worker's process."""

    scene: Scene
    stores: tuple[CountingStore, ...]
    apart: bool

    def appends(self, chat: str) -> int:
        """Return how many appends were written; one that met a conflict and was made again is one."""
        made = [call for store in self.stores for call in store.calls if call.name == "append" and call.chat == chat]
        return len({call.commands for call in made})

    def tries(self, chat: str) -> int:
        """Return how many appends were asked for."""
        return sum(store.count("append", ChatId(chat)) for store in self.stores)

    async def ready(self, chat: str = "nobody's") -> None:
        """Wait until the worker of this process would take a chat in the append of a command.

        A chat that has settled may still have its runner, which is about to end: until then it is not taken.
        """
        worker = self.scene.engine.worker
        if worker is None:
            return
        async with asyncio.timeout(PATIENCE), self.scene.store.hints() as hints:
            while not worker.may_take(ChatId(chat)):
                try:
                    async with asyncio.timeout(SETTINGS.poll):
                        await anext(hints)
                except TimeoutError:
                    continue


Play = Callable[[Stage], Awaitable[str]]


@asynccontextmanager
async def counted(place: Place, script: list[Reply], tools: list[Tool], *, apart: bool) -> AsyncIterator[Stage]:
    """Set a scene with a worker in the process of the commands, or in (what counts as) another one."""
    here = CountingStore(open_store(place.url))
    if not apart:
        async with stage(place, script, tools=tools, store=here) as scene:
            yield Stage(scene, (here,), apart)
        return
    there = CountingStore(open_store(place.url))
    async with stage(place, script, tools=tools, store=here, worker=False) as scene:
        providers = {place.provider: scene.engine.runtime.provider(place.provider)}
        agents = scene.engine.runtime.agents.values()
        async with Engine(there, agents, providers=providers, settings=SETTINGS):
            yield Stage(scene, (here, there), apart)


@pytest.fixture(params=[False, True], ids=["worker-here", "worker-elsewhere"])
def apart(request: pytest.FixtureRequest) -> bool:
    """Whether the worker runs in another process than the one that takes commands."""
    elsewhere: bool = request.param
    return elsewhere


@pytest.fixture
def one_place(url: str) -> Place:
    """One provider will do: what a turn costs does not depend on it."""
    return Place(provider=max(SERVERS), url=url, agent=f"agent-{uuid.uuid4().hex}")


async def played(place: Place, script: list[Reply], tools: list[Tool], play: Play, *, apart: bool) -> tuple[int, int]:
    """Play a conversation; return its appends, and how many tries met a conflict."""
    async with counted(place, script, tools, apart=apart) as at:
        await at.ready()
        chat = await play(at)
        await at.scene.settled(chat)
        await check(at.scene, chat)
        appends = at.appends(chat)
        log = await at.scene.store.read_events(ChatId(chat))
        assert appends == sum(event.envelope.index == 0 for event in log)
        return appends, at.tries(chat) - appends


async def _say(at: Stage) -> str:
    return await at.scene.start("Go")


@pytest.mark.parametrize(
    ("effects", "script"),
    [
        pytest.param(1, [Answer("Done.")], id="text"),
        pytest.param(3, [Answer([ToolCall("add", {"a": 1, "b": 2})]), Answer("Done.")], id="tool"),
        pytest.param(
            4,
            [Answer([ToolCall("add", {"a": 1, "b": 2}), ToolCall("add", {"a": 3, "b": 4})]), Answer("Done.")],
            id="two-parallel-tools",
        ),
    ],
)
async def test_one_append_per_effect(one_place: Place, effects: int, script: list[Reply], *, apart: bool) -> None:
    appends, conflicts = await played(one_place, script, [add], _say, apart=apart)
    assert appends <= effects + 1 + apart
    assert conflicts == 0


async def test_client_tool(one_place: Place, *, apart: bool) -> None:
    async def play(at: Stage) -> str:
        chat = await at.scene.start("Go")
        state = await at.scene.settled(chat, "requires_action")
        action = state.control.action
        assert action is not None
        await at.ready(chat)
        results = {item.call: "yes" for item in action.items if item.call is not None}
        await at.scene.engine.submit_tool_results(chat, action.id, results)
        return chat

    script: list[Reply] = [Answer([ToolCall("ask_client", {"question": "Yes?"})]), Answer("Done.")]
    appends, conflicts = await played(one_place, script, [ASK], play, apart=apart)
    effects, submissions, entries = 2, 1, 2 * apart
    assert appends <= effects + 1 + submissions + entries
    assert conflicts == 0
    assert ActionRequired.type == "action_required"


async def test_retry(one_place: Place, *, apart: bool) -> None:
    appends, conflicts = await played(one_place, [Fail(500), Answer("Done.")], [], _say, apart=apart)
    effects, retries = 2, 1
    assert appends <= effects + 1 + retries + apart
    assert conflicts == 0


async def test_queued_message(one_place: Place, *, apart: bool) -> None:
    gate = Gate()

    async def play(at: Stage) -> str:
        chat = await at.scene.start("one")
        await gate.reached()
        await at.scene.engine.send_message(chat, "two")
        gate.release()
        return chat

    script: list[Reply] = [Answer("One.", gate=gate), Answer("Two.")]
    appends, conflicts = await played(one_place, script, [], play, apart=apart)
    turns, effects = 2, 2
    assert appends <= effects + turns + apart
    assert conflicts <= 1


async def test_interrupt(one_place: Place, *, apart: bool) -> None:
    door = Door("door")

    async def play(at: Stage) -> str:
        chat = await at.scene.start("Go")
        await door.until_begun()
        await at.scene.engine.interrupt(chat)
        door.opened.set()
        return chat

    script: list[Reply] = [Answer([ToolCall("door", {"to": "a"})])]
    appends, conflicts = await played(one_place, script, [door.tool()], play, apart=apart)
    effects, commands = 2, 1
    assert appends <= effects + 1 + commands + apart
    assert conflicts <= 1
