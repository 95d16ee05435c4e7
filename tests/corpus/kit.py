"""What scenarios of the corpus share: engines on virtual time over one store, agents, models that wait at gates."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from typing import Any, Final, TypeAlias

from chatfold import Agent, Engine, ModelConfig, Prices, Settings, StaticContext, client_tool, tool
from chatfold.hooks import HookAnswer, HookCall, PythonHook
from chatfold.testing import ClassifiedError, ScriptedProvider, Turn, VirtualTime
from chatfold.virtual.loop import Host
from events.messages import Usage
from events.parts import Part
from generation.context import ContextFile
from generation.providers.contract import Provider
from store.memory import MemoryStore

Scenario: TypeAlias = Callable[["Scene"], Awaitable[str]]
"""Does something with a scene, and returns the chat whose log is kept."""

MODEL: Final = ModelConfig(
    provider="scripted",
    name="m",
    context_limit=4000,
    max_output=500,
    prices=Prices(input=Decimal(3), output=Decimal(15), cache_read=Decimal("0.3"), cache_write=Decimal("3.75")),
)
USAGE: Final = Usage(input=100, output=20, cache_read=30, cache_write=10, reasoning=5)
BUSY: Final = ClassifiedError(kind="overloaded", message="Too many requests.", retryable=True, status_code=529)
DENIED: Final = ClassifiedError(kind="auth", message="The key is wrong.", detail="401", status_code=401)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def slow(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return "done"


@tool
def breaks() -> str:
    """Break."""
    raise RuntimeError("broken")


@tool(stop_after=True)
def file_report() -> str:
    """File the report, which ends the work."""
    return "filed"


@tool(exclusive=True)
def alone() -> str:
    """Must be called alone."""
    return "alone"


@tool(needs_approval=True)
def delete(path: str) -> str:
    """Delete a file, once a person allows it."""
    return f"deleted {path}"


@tool(crash="rerun")
async def stubborn(seconds: float) -> str:
    """Go on for some time, whoever wants it to end."""
    ends = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < ends:
        try:
            await asyncio.sleep(ends - asyncio.get_running_loop().time())
        except asyncio.CancelledError:
            continue
    return "at last"


ASK: Final = client_tool(
    "ask", "Ask the user.", {"type": "object", "properties": {"q": {"type": "string"}}}, action_timeout=60
)
SIGN: Final = client_tool("sign", "Let the user sign.", {"type": "object", "properties": {}}, on_expiry="end_turn")
TOOLS: Final = [add, slow, breaks, file_report, alone, delete, stubborn, ASK, SIGN]
_OVER: Final = 20.0
"""Seconds after which the lease of a process that was killed is over."""
CONTEXT: Final = StaticContext([ContextFile(path="AGENTS.md", text="Be brief.")], name="workspace")


def assistant(name: str = "assistant", **options: Any) -> Agent:
    """Return an agent with all tools."""
    given: dict[str, Any] = {"model": MODEL, "system": "You help.", "tools": TOOLS, **options}
    return Agent(name=name, **given)


DECLARED: Final[dict[str, Agent]] = {}
"""The agents of all scenes so far, by their revisions: what they say is kept beside the logs."""


class Scene:
    """Engines over one store in virtual time.

    Args:
        time: Virtual time.
        stack: Closes the engines.
    """

    def __init__(self, time: VirtualTime, stack: AsyncExitStack) -> None:
        self._time: Final = time
        self._stack: Final = stack
        self.store = MemoryStore()
        self.holding = asyncio.Event()
        self.opened = asyncio.Event()

    async def engine(
        self,
        script: Sequence[str | Turn] = (),
        *,
        agents: Sequence[Agent] = (),
        worker: bool = True,
        store: MemoryStore | None = None,
        hooks: Sequence[PythonHook] = (),
        providers: Mapping[str, Provider] | None = None,
        **settings: Any,
    ) -> Engine:
        """Return an engine that is entered; its model says the script, where there are no other providers."""
        made = self._time.engine(
            _declared(agents),
            providers=providers or {"scripted": ScriptedProvider(list(script))},
            settings=Settings(**settings),
            store=store or self.store,
            worker=worker,
            hooks=hooks,
        )
        return await self._stack.enter_async_context(made)

    async def doomed(self, script: Sequence[str | Turn], *, agents: Sequence[Agent] = ()) -> Host:
        """Start a worker in a process of its own, and return that process: what is ``dead`` of it never goes on.

        Its model says the script, with a gate of its own.
        """
        process = Host("doomed")
        context = process.context()
        made = context.run(
            self._time.engine,
            _declared(agents),
            providers={"scripted": ScriptedProvider(list(script))},
            store=self.store,
        )
        await asyncio.get_running_loop().create_task(made.__aenter__(), context=context)
        return process

    async def killed(self, process: Host) -> None:
        """Kill a process, and wait until its lease is over."""
        process.dead = True
        await asyncio.sleep(_OVER)

    def shut(self) -> None:
        """Let the next model that comes to the gate stop there."""
        self.holding, self.opened = asyncio.Event(), asyncio.Event()

    async def holds(self) -> None:
        """Wait until a model stands at the gate."""
        await self.holding.wait()


def _declared(agents: Sequence[Agent]) -> Sequence[Agent]:
    given = agents or [assistant()]
    DECLARED.update((agent.revision, agent) for agent in given)
    return given


async def talk(engine: Engine, *said: str | Sequence[Part], chat: str | None = None, **options: Any) -> str:
    """Say one thing after the other, each when the chat is settled, and return the chat's id.

    The first begins a chat where none is named; options are those of its begin.
    """
    for each in said:
        if chat is None:
            chat = (await engine.create_chat("assistant", each, **options)).chat
        else:
            await engine.send_message(chat, each)
        await engine.settled(chat)
    assert chat is not None, "nothing was said"
    return chat


def hook(*events: Any, **answer: Any) -> PythonHook:
    """Return a hook that always gives the same answer."""

    async def ask(call: HookCall) -> HookAnswer:
        return HookAnswer(**answer)

    return PythonHook(ask, events)


def play(scenario: Scenario) -> bytes:
    """Run a scenario, and return the log of its chat as a file."""
    time = VirtualTime(1)

    async def run() -> bytes:
        async with AsyncExitStack() as stack:
            scene = Scene(time, stack)
            chat = await scenario(scene)
            async with Engine(scene.store, worker=False) as reader:
                return await reader.export_log(chat, blobs=True)

    return time.run(run)
