"""What a service asks to wait is waited, to the tenth of a second, by whoever is there when it is over.

The services are on loopback, behind their SDKs. The database's clock stands where a test puts it.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.testing.servers import Answer, Fail, LoopbackServer, Reply
from events.envelope import Recorded
from events.vocabulary import Acquired, AttemptStarted, RetryScheduled
from generation.agents import Agent
from generation.providers.registry import ProviderSettings, make_provider
from store.clock import wall_clock
from store.contract import Store
from store.memory import MemoryStore
from store.schema import READER_LEVEL
from store.sqlite import SqliteStore
from tests.e2e.test_takeover import ROOT, WorkerProcess
from tests.generation.providers.kit import MODEL, NAMES, SERVERS
from tests.races.gates import GatedStore
from tests.races.kit import CHAT, log_of, reached, settled, sound, texts

pytestmark = pytest.mark.anyio

E = TypeVar("E")
BUSY: list[Reply] = [Fail(429, headers={"retry-after": "3"}), Answer("Here.")]
SETTINGS = Settings(poll=0.02, lease=600.0)


class StandingClock:
    """A database's clock that stands until a test puts it on."""

    def __init__(self) -> None:
        self.now = wall_clock()

    def __call__(self) -> int:
        return self.now


@asynccontextmanager
async def worker_on(store: Store, clock: StandingClock, name: str, server: LoopbackServer) -> AsyncIterator[Engine]:
    """Run a worker that calls a service."""
    provider = make_provider(name, ProviderSettings(base_url=server.base_url, api_key="key-of-the-test"))
    agent = Agent(name="helper", model=f"{name}/{MODEL}")
    engine = Engine(store, [agent], providers={name: provider}, settings=SETTINGS)
    engine.runtime.now = clock
    async with engine:
        yield engine
    await provider.close()


async def looked(store: GatedStore) -> None:
    """Wait until a worker has looked for due chats, and dealt with what it saw: the look after that has come."""
    for _ in range(3):
        look = store.hold("find_due", after=True)
        await look.arrived()
        look.open()


def only(log: list[Recorded], kind: type[E]) -> E:
    """Return the one event of a kind."""
    (found,) = [each.event for each in log if isinstance(each.event, kind)]
    return found


async def due(store: GatedStore) -> list[str]:
    """Return the chats that any worker may take now."""
    found = await store.inner.find_due(agents=("helper",), reader_level=READER_LEVEL, limit=10)
    return [each.chat for each in found]


async def check_waits(store: GatedStore, clock: StandingClock, engine: Engine, server: LoopbackServer) -> None:
    """See that a retry is made 3 seconds after its call has failed, and not at 2.9."""
    await reached(engine, lambda state: state.control.retry is not None)
    log = await log_of(store)
    retry = only(log, RetryScheduled)
    asked_at = log[-1].envelope.recorded_at
    assert (retry.delay_us, retry.not_before - asked_at) == (3_000_000, 3_000_000)
    assert (retry.error.kind, retry.error.status_code, retry.error.retry_after_us) == ("rate_limit", 429, 3_000_000)
    clock.now = asked_at + 2_900_000
    await looked(store)
    assert await due(store) == []
    assert await log_of(store) == log
    assert len(server.requests) == 1
    held = store.hold("find_due")
    await held.arrived()
    clock.now = asked_at + 3_000_000
    assert await due(store) == [CHAT]
    held.open()
    state = await settled(engine)
    assert texts(state) == ["user: Hello", "assistant: Here."]
    assert len(server.requests) == 2
    starts = [each for each in await sound(store) if isinstance(each.event, AttemptStarted)]
    assert [each.envelope.recorded_at for each in starts[1:]] == [asked_at + 3_000_000]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_429_is_retried_when_what_it_asks_for_has_passed(
    kind: str, name: str, request: pytest.FixtureRequest
) -> None:
    clock = StandingClock()
    base: Store = (
        MemoryStore(clock=clock)
        if kind == "memory"
        else SqliteStore(request.getfixturevalue("migrated_sqlite"), clock=clock)
    )
    async with base, SERVERS[name](BUSY) as server:
        gated = GatedStore(base)
        async with worker_on(gated, clock, name, server) as engine:
            await engine.create_chat("helper", "Hello", chat_id=CHAT)
            await check_waits(gated, clock, engine, server)


@asynccontextmanager
async def another_process(order: dict[str, Any]) -> AsyncIterator[WorkerProcess]:
    """Start a worker in a process of its own; it is gone at the end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.e2e.worker_process", json.dumps(order), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield WorkerProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("name", NAMES)
async def test_a_worker_that_is_killed_in_the_wait_leaves_the_retry_to_another(name: str, migrated_sqlite: str) -> None:
    """The clock of the one that is killed stands: only the other one can see the 3 seconds pass."""
    clock = StandingClock()
    async with SqliteStore(migrated_sqlite, clock=clock) as base, SERVERS[name](BUSY) as server:
        order = {
            "provider": name,
            "base_url": server.base_url,
            "agent": "helper",
            "model": f"{name}/{MODEL}",
            "stop": False,
            "url": migrated_sqlite,
            "settings": SETTINGS.model_dump(),
            "now": clock.now,
        }
        async with another_process(order) as first, Engine(GatedStore(base), worker=False, settings=SETTINGS) as user:
            await user.create_chat("helper", "Hello", chat_id=CHAT)
            await reached(user, lambda state: state.control.retry is not None)
            assert await first.end(signal.SIGKILL) == -signal.SIGKILL
        first_holder = only(await log_of(base), Acquired).worker
        gated = GatedStore(base)
        async with worker_on(gated, clock, name, server) as engine:
            await check_waits(gated, clock, engine, server)
        second = [each.event for each in await log_of(base) if isinstance(each.event, Acquired)][-1]
        assert second.worker != first_holder
        assert not second.takeover
