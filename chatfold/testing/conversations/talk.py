"""One random conversation: users at one process after the other, each of which may die at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from chatfold.engine import Engine
from chatfold.testing.conversations.answers import LIMIT
from chatfold.testing.conversations.services import Service
from chatfold.testing.prompts import prompt_problems
from chatfold.testing.servers.anthropic_prefix import Coverage
from chatfold.testing.simulation.checks import RESTING
from chatfold.testing.simulation.ledger import Ledger, LedgerStore
from chatfold.testing.simulation.loop import SimulatedLoop
from chatfold.testing.simulation.machine import EPOCH_US
from chatfold.testing.simulation.network import Network
from chatfold.testing.simulation.process import Process
from chatfold.testing.simulation.profile import Size, draw
from chatfold.testing.simulation.users import Action, Habits, Town, act, create
from chatfold.transfer import stored_log
from events.codec import decode
from events.control import Control
from events.ids import ChatId
from events.logfile import read_log
from generation.agents import Agent, Limits
from generation.models import ModelConfig
from generation.providers.native import WebSearch
from generation.tools.contract import Tool, client_tool

COVERS: Final[Coverage] = "request"
"""What signatures of thinking cover in these conversations."""

REST: Final = 120.0
"""Virtual seconds within which every chat has come to rest at the end."""

_LOOK: Final = 0.25

_CRASH: Final = 0.08
"""How often a process dies in the place of something that a user does."""

_QUIET: Final = replace(draw(Random(0), Size()), hints_lost=0.0)
"""A network on which nothing is lost."""


def _look(a: int = 0) -> str:
    """Look at something."""
    return f"seen {a}"


async def _wait(a: int = 0) -> dict[str, int]:
    """Wait a little."""
    await asyncio.sleep(a % 4 / 4)
    return {"a": a}


async def _fail() -> str:
    """Fail."""
    raise ValueError("it fails")


async def _grant() -> str:
    """Do what the client allows."""
    return ""


_TOOLS: Final = (
    Tool.from_function(_look, name="look", crash="rerun"),
    Tool.from_function(_wait, name="wait"),
    Tool.from_function(_fail, name="fail"),
    Tool.from_function(_grant, name="grant", needs_approval=True),
    client_tool("ask", "Ask the client.", {"type": "object", "properties": {}}),
)


def _model(provider: str, name: str, *, thinks: bool = True) -> ModelConfig:
    effort = {"effort": "medium", "max_effort": "high"} if thinks else {}
    return ModelConfig(provider=provider, name=name, context_limit=LIMIT, **effort)  # type: ignore[arg-type]


_SEARCHING: Final = (
    _model("anthropic", "claude-sonnet-4-5"),
    _model("anthropic", "claude-opus-5"),
    _model("openai", "gpt-5"),
    _model("openai", "gpt-5-mini"),
)
_ALL: Final = (*_SEARCHING, _model("openai-chat", "gpt-5"), _model("openai-chat", "any", thinks=False))
_LIMITS: Final = Limits(max_steps=6, max_model_attempts=4, action_timeout=4.0)

AGENTS: Final = (
    Agent(name="plain", model=_ALL[0], models=_ALL, tools=_TOOLS, limits=_LIMITS, system="Be brief."),
    Agent(
        name="searching", model=_ALL[1], models=_SEARCHING, tools=_TOOLS, limits=_LIMITS, provider_tools=[WebSearch()]
    ),
)
_MODELS: Final = {"plain": [each.reference for each in _ALL], "searching": [each.reference for each in _SEARCHING]}


async def _switch(town: Town, chat: ChatId, control: Control) -> None:
    """Choose another model for the chat."""
    agent, model = control.agent, town.random.choice(_MODELS[control.agent or "plain"])
    await town.command(
        chat, f"let {agent} ask {model}", lambda engine, id_: engine.set_model(chat, model, command_id=id_)
    )


async def _hand_over(town: Town, chat: ChatId, control: Control) -> None:
    """Hand the chat to the other agent, which forgets nothing that the first one's services have searched."""
    agent = "plain" if control.agent == "searching" else "searching"
    await town.command(chat, f"hand over to {agent}", lambda engine, id_: _handed(engine, chat, agent, id_))


async def _handed(engine: Engine, chat: ChatId, agent: str, identity: str) -> None:
    await engine.set_model(chat, None, command_id=f"{identity}.model")
    await engine.set_agent(chat, agent, command_id=identity)


async def _there_and_back(town: Town, chat: ChatId, control: Control) -> None:
    """Have the chat compacted, and a while later not."""
    await town.command(chat, "compact", lambda engine, id_: engine.compact(chat, command_id=id_))
    await asyncio.sleep(town.random.random() * 4.0)
    await town.command(chat, "uncompact", lambda engine, id_: engine.uncompact(chat, command_id=id_))


_MORE: Final[dict[str, Action]] = {"switch": _switch, "hand over": _hand_over, "there and back": _there_and_back}
HABITS: Final = Habits(
    busy=(
        ("send", 3.0), ("send interrupting", 4.0), ("interrupt", 5.0), ("edit", 3.0), ("promote", 1.0),
        ("fork", 0.5), ("erase", 0.5), ("switch", 2.0),
    ),
    idle=(
        ("send", 12.0), ("edit", 3.0), ("resume", 2.0), ("compact", 2.0), ("there and back", 3.0), ("clear", 0.5),
        ("fork", 1.0), ("erase", 0.7), ("switch", 4.0), ("hand over", 1.0), ("unarchive", 0.2),
    ),
    more=_MORE,
)  # fmt: skip


class Talk:
    """What happens in one conversation.

    Args:
        loop: Virtual time.
        random: Decides everything.
        tell: Takes lines of the trace.
        acts: What users do, at most.
    """

    def __init__(self, loop: SimulatedLoop, random: Random, tell: Callable[[str], None], *, acts: int) -> None:
        self.loop = loop
        self.tell = tell
        self.ledger = Ledger(loop.fail)
        self._random = random
        self._acts = random.randint(max(1, acts // 3), acts)
        self._network = Network(loop, _QUIET, Random(random.random()), tell)
        self._network.calm = True
        self._database = LedgerStore(self.ledger, self._network, lambda: EPOCH_US + round(loop.time() * 1e6))
        self._services = {
            name: Service(name, Random(random.random()), covers=COVERS, complain=loop.fail)
            for name in ("anthropic", "openai", "openai-chat")
        }
        self._processes: list[Process] = []
        self._made = 0
        self._started: list[asyncio.Future[None]] = []
        self.town = Town(
            random=Random(random.random()),
            ledger=self.ledger,
            database=self._database,
            processes=self._processes,
            tell=tell,
            fail=loop.fail,
        )

    async def live(self) -> None:
        """Go through all of it; what is wrong is told to the loop."""
        async with self._database:
            self._spawn()
            await create(self.town, 0, tuple(_MODELS))
            for _ in range(self._acts):
                await asyncio.sleep(self._random.expovariate(2.0))
                if self._random.random() < _CRASH:
                    self._crash()
                else:
                    await act(self.town, HABITS)
            await self._settle()
            await self._processes[0].leave()
            await self._check()

    def _spawn(self) -> None:
        self._made += 1
        process = Process(
            f"p{self._made}",
            self.loop,
            self._database,
            self._network,
            agents=AGENTS,
            providers=dict(self._services),
            worker=True,
            capacity=100,
        )
        self._processes[:] = [process]
        self.tell(f"{process.name} starts")
        self._started.append(process.start())

    def _crash(self) -> None:
        self.tell(f"{self._processes[0].name} is killed")
        self._processes[0].kill()
        self._spawn()

    async def _settle(self) -> None:
        """Wait until every chat has come to rest; services and tools do nothing odd any more."""
        for service in self._services.values():
            service.calm = True
        until = self.loop.time() + REST
        while restless := [header for header in self._database.headers() if header.status not in RESTING]:
            if self.loop.time() > until:
                shown = ", ".join(f"{header.chat} is {header.status} at {header.version}" for header in restless)
                self.loop.fail(f"stuck for {REST:.0f} s: {shown}")
            await asyncio.sleep(_LOOK)

    async def _check(self) -> None:
        """Check the prompts of each prefix of each log."""
        for header in self._database.headers():
            lines = (await stored_log(self._database, header.chat, blobs=True)).lines()
            exported = read_log(b"".join(lines).splitlines(), header.chat)
            found = prompt_problems(decode(event, blobs=exported.blobs) for event in exported.events)
            if found:
                self.loop.fail("; ".join(f"{header.chat} {problem}" for problem in found[:5]))
