"""One simulated process: a real engine behind a network connection of its own, which can be killed and stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from chatfold.engine import Engine
from chatfold.randomness import new_id
from chatfold.settings import Settings
from chatfold.testing.episodes import NotedParts
from chatfold.testing.simulation.agents import AGENTS
from chatfold.testing.simulation.network import Network, ProcessStore
from chatfold.testing.simulation.profile import GRACE, LEASE, POLL
from chatfold.virtual.loop import WORLD, Host, SimulatedLoop
from generation.agents import Agent
from generation.hooks.dispatch import Hook
from generation.providers.contract import Provider
from store.contract import Store
from store.errors import StoreError

_STARTING: Final = 0.5
"""Seconds after which a process that could not start tries again."""


class ProcessDied(Exception):
    """The process was killed before it answered."""


class Process(Host):
    """A process with an engine.

    Args:
        name: What traces call it.
        loop: Virtual time.
        database: The store that all processes share.
        network: What lies between.
        agents: Who answers; None for those of simulated worlds.
        providers: Whom they ask, by name.
        hooks: Are asked before and after what happens.
        worker: Whether it runs chats.
        capacity: How many at once.

    Attributes:
        running: Its engine was entered, and not left since.
    """

    def __init__(
        self,
        name: str,
        loop: SimulatedLoop,
        database: Store,
        network: Network,
        *,
        agents: Sequence[Agent] | None = None,
        providers: Mapping[str, Provider],
        hooks: Sequence[Hook] = (),
        worker: bool,
        capacity: int,
    ) -> None:
        super().__init__(name)
        self._loop = loop
        self._calls: dict[asyncio.Future[Any], None] = {}
        self.running = False
        self.worker = worker
        self._context = self.context()
        self.engine = self._context.run(
            Engine,
            ProcessStore(self, database, network),
            list(AGENTS.values()) if agents is None else agents,
            worker=worker,
            providers=providers,
            settings=make_settings(capacity),
            hooks=hooks,
        )
        self.engine.runtime.parts = self._context.run(NotedParts, time.monotonic)
        # Its thread would look at a real clock.
        self.engine.runtime.settings = replace(self.engine.runtime.settings, watch_loop=False)
        # By default an id takes the time of the clock that was there when its module was imported.
        self.engine.runtime.new_id = lambda: new_id(time.time)

    def start(self) -> asyncio.Future[None]:
        """Enter the engine, again and again while the database is away."""
        return self.call(self._enter)

    def call(self, work: Callable[[Engine], Coroutine[Any, Any, Any]]) -> asyncio.Future[Any]:
        """Do something in this process.

        Returns:
            What it gives; ProcessDied where the process is killed before it does. Cancelling it cancels the work.
        """
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self.dead:
            answer.set_exception(ProcessDied(self.name))
            return answer
        self._calls[answer] = None
        task = self._loop.create_task(work(self.engine), context=self._context.copy())
        task.add_done_callback(lambda done: self._answered(answer, done), context=WORLD.context())
        answer.add_done_callback(lambda given: task.cancel() if given.cancelled() and not self.dead else None)
        return answer

    def kill(self) -> None:
        """Kill it: nothing of it runs any more, no cleanup either. What it has sent is on its way."""
        self.dead = True
        self.running = False
        self.troubles.append(self._loop.time())
        for answer in self._calls:
            if not answer.done():
                answer.set_exception(ProcessDied(self.name))
        self._calls.clear()

    def leave(self) -> asyncio.Future[None]:
        """Leave the engine, as a process does that is asked to end."""
        return self.call(self._leave)

    async def _enter(self, engine: Engine) -> None:
        while True:
            try:
                await engine.__aenter__()
            except StoreError:
                await asyncio.sleep(_STARTING)
            else:
                self.running = True
                return

    async def _leave(self, engine: Engine) -> None:
        self.running = False
        await engine.__aexit__(None, None, None)

    def _answered(self, answer: asyncio.Future[Any], done: asyncio.Task[Any]) -> None:
        self._calls.pop(answer, None)
        error = None if done.cancelled() else done.exception()
        if answer.done():
            return
        if done.cancelled():
            answer.cancel()
        elif error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(done.result())


@cache
def make_settings(capacity: int) -> Settings:
    """Return the settings of a process that runs so many chats at once."""
    return Settings(
        capacity=capacity,
        lease=LEASE,
        poll=POLL,
        grace=GRACE,
        first_part_timeout=5.0,
        silence_timeout=5.0,
        model_retry_unit=0.1,
        queue_limit=3,
    )
