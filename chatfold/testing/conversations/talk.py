"""One random conversation: users at one process after the other, each of which may die at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from chatfold.testing.conversations.agents import AGENTS, MEDDLER, MODELS
from chatfold.testing.conversations.habits import HABITS
from chatfold.testing.conversations.hooks import Meddler
from chatfold.testing.conversations.services import Asked, Service
from chatfold.testing.episodes import EPISODE
from chatfold.testing.servers.anthropic_prefix import Coverage
from chatfold.testing.simulation.checks import check_chat, check_commands
from chatfold.testing.simulation.ledger import Ledger, LedgerStore
from chatfold.testing.simulation.machine import EPOCH_US
from chatfold.testing.simulation.network import Network
from chatfold.testing.simulation.process import Process
from chatfold.testing.simulation.profile import Size, draw
from chatfold.testing.simulation.users import Town, act, create
from chatfold.virtual.loop import SimulatedLoop
from events.codec import decode
from events.envelope import AT_REST
from events.replay import replay
from events.vocabulary import AttemptStarted
from generation.prompt import Prompt

COVERS: Final[Coverage] = "request"
"""What signatures of thinking cover in these conversations."""

REST: Final = 120.0
"""Virtual seconds within which every chat has come to rest at the end."""

_LOOK: Final = 0.25

_CRASH: Final = 0.08
"""How often a process dies in the place of something that a user does."""

_HOOKS: Final = 0.4
"""How many conversations have hooks."""

_QUIET: Final = replace(draw(Random(0), Size()), hints_lost=0.0)
"""A network on which nothing is lost."""


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
            name: Service(name, Random(random.random()), covers=COVERS, complain=loop.fail, asked=self._asked)
            for name in ("anthropic", "openai", "openai-chat")
        }
        self._meddler = Meddler(Random(random.random()), often=random.random() * 0.3, complain=loop.fail)
        self._hooks = [self._meddler] if random.random() < _HOOKS else []
        MEDDLER.set(self._meddler if self._hooks else None)  # before there are processes, so that their tools have it
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
            await create(self.town, 0, tuple(MODELS))
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
            hooks=self._hooks,
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
        self._meddler.calm = True
        until = self.loop.time() + REST
        while restless := [header for header in self._database.headers() if header.status not in AT_REST]:
            if self.loop.time() > until:
                shown = ", ".join(f"{header.chat} is {header.status} at {header.version}" for header in restless)
                self.loop.fail(f"stuck for {REST:.0f} s: {shown}")
            await asyncio.sleep(_LOOK)

    async def _check(self) -> None:
        """Check each log, the prompts of each of its prefixes, and what users were told."""
        for problem in check_commands(self.ledger):
            self.loop.fail(problem)
        for header in self._database.headers():
            found, _ = await check_chat(self._database, self.ledger, header.chat, ())
            if found:
                self.loop.fail("; ".join(found[:5]))

    def _asked(self) -> Asked:
        """Return what the attempt that runs asks for by its log: the whole prompt, and a response known to be lost."""
        episode = EPISODE.get()
        if episode is None:
            raise LookupError("a response is gone on from outside of an attempt")
        for step in replay(decode(event) for event in self.ledger.logs[episode.chat]):
            event, control = step.recorded.event, step.after.control
            if isinstance(event, AttemptStarted) and (control.history_version, control.attempt) == episode[1:]:
                return Asked(Prompt().build(step.after.messages), control.lost_response)
        raise LookupError(f"{episode} is not in the log")
