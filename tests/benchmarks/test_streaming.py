"""What the engine adds to a stream: per delta, from the last delta to the commit, and with many chats at once.

All goes through the real SDKs, from a service in a process of its own. What a delta costs is measured in pairs, round
by round in one run: the SDK alone reads the same answer, then the engine takes it, with everything that a turn has. It
is the processor's time, not the clock's: others may use the machine. From the last delta to the commit it is the
clock's time, and where the system lets us, the processor is ours for that: a thread that waits for its turn behind
another program's work tells nothing of the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client import CollectorRegistry

from chatfold.collector import tune_collector
from chatfold.engine import Engine
from chatfold.observing import Observer, PrometheusObserver, SpanObserver
from chatfold.settings import Settings
from chatfold.testing.stores import CallName, WrappedStore
from events.ids import ChatId
from generation.agents import Agent
from generation.prompt_types import ModelRequest
from generation.providers.contract import Provider, StreamPart, TextDelta, UsageSoFar
from generation.providers.registry import ProviderSettings, make_provider
from store import open_store
from store.contract import Append
from tests.benchmarks.stream_service import service

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]

DELTAS: Final = 2000
ROUNDS: Final = 7
MOST_PER_DELTA: Final = 30.0
"""Microseconds of the processor on top of what the SDK takes."""
MOST_TO_COMMIT: Final = 5.0
"""Milliseconds."""
CHATS, RATE, LASTING = 200, 20.0, 10.0
KEY: Final = "key-of-the-bench"


@pytest.fixture(params=["anthropic", "openai", "openai-chat"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/chats.db"
    make: Callable[[], str] = request.getfixturevalue("durable_database")
    return make()


def sdk_alone(provider: str, base_url: str) -> tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[None]]]:
    """Return what reads one answer with the SDK and nothing else, and what closes it."""
    if provider == "anthropic":
        from anthropic import AsyncAnthropic

        client: Any = AsyncAnthropic(base_url=base_url, api_key=KEY, max_retries=0)
        ask = {"model": "bench", "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 1000}
        create = client.messages.create
    else:
        from openai import AsyncOpenAI

        client = AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0)
        if provider == "openai":
            ask, create = {"model": "bench", "input": "Hello."}, client.responses.create
        else:
            ask = {"model": "bench", "messages": [{"role": "user", "content": "Hello."}]}
            create = client.chat.completions.create

    async def read() -> object:
        last = None
        async with await create(**ask, stream=True) as events:
            async for event in events:
                last = event
        return last

    return read, client.close


class Clocked:
    """A provider that notes when it gave its last delta."""

    def __init__(self, inner: Provider) -> None:
        self.name = inner.name
        self.last_at = 0.0
        self._inner = inner

    async def close(self) -> None:
        await self._inner.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        async with contextlib.aclosing(self._inner.stream(request)) as parts:
            async for part in parts:
                if type(part) is TextDelta:
                    self.last_at = time.perf_counter()
                yield part


class Commits(WrappedStore):
    """Notes when a step was handed over, and when it was committed."""

    handed_at = at = 0.0
    _step = False

    def before(self, name: CallName, chat: ChatId | None = None, append: Append | None = None) -> None:
        del chat
        if name == "append" and append is not None:
            self._step = append.events[0].stored.envelope.type == "step_committed"
            if self._step:
                self.handed_at = time.perf_counter()

    def after(self, name: CallName) -> None:
        if name == "append" and self._step:
            self.at = time.perf_counter()


async def processor_time(run: Callable[[], Awaitable[object]]) -> float:
    """Return microseconds of this process's processor time."""
    gc.collect()
    start = time.process_time()
    await run()
    return (time.process_time() - start) * 1e6


def observers(which: str) -> Iterable[Observer]:
    return [PrometheusObserver(CollectorRegistry()), SpanObserver()] if which == "observed" else []


@pytest.mark.parametrize("which", ["alone", "watched", "observed"])
async def test_per_delta(provider: str, which: str) -> None:
    async with service(provider, DELTAS) as base_url:
        read, close = sdk_alone(provider, base_url)
        made = make_provider(provider, ProviderSettings(base_url=base_url, api_key=KEY))
        agent = Agent(name="bench", model=f"{provider}/bench")
        engine = Engine("memory://", [agent], providers={provider: made}, observers=observers(which))
        tune_collector()
        sdk, ours = list[float](), list[float]()
        async with engine:
            chats = [(await engine.create_chat("bench")).chat for _ in range(ROUNDS + 1)]

            async def turn(chat: str) -> None:
                await engine.send_message(chat, "Hello.")
                await engine.settled(chat)

            for number, chat in enumerate(chats):
                watcher = asyncio.create_task(follow(engine, chat)) if which == "watched" else None
                of_sdk, of_us = await processor_time(read), await processor_time(lambda: turn(chat))  # noqa: B023 - awaited here
                if watcher is not None:
                    watcher.cancel()
                if number:
                    sdk.append(of_sdk / DELTAS)
                    ours.append((of_us - of_sdk) / DELTAS)
        await close()
        await made.close()
    median = statistics.median(ours)
    print(
        f"\nper delta, {provider}, {which}: {median:.1f} us [{min(ours):.1f} .. {max(ours):.1f}]"
        f" on top of the SDK's {statistics.median(sdk):.1f} us"
    )
    assert median < MOST_PER_DELTA


async def follow(engine: Engine, chat: str) -> None:
    async with contextlib.aclosing(engine.stream(chat)) as items:
        async for _ in items:
            pass


@contextlib.contextmanager
def before_others() -> Iterator[None]:
    """Have this thread, and those that it starts, run before other programs' where the system lets us."""
    if not hasattr(os, "sched_setscheduler"):  # macOS
        yield
        return
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


async def test_from_the_last_delta_to_the_commit(provider: str, url: str) -> None:
    async with service(provider, DELTAS) as base_url:
        clocked = Clocked(make_provider(provider, ProviderSettings(base_url=base_url, api_key=KEY)))
        commits = Commits(open_store(url))
        agent = Agent(name="bench", model=f"{provider}/bench")
        took, stored = list[float](), list[float]()
        with before_others():
            async with Engine(commits, [agent], providers={provider: clocked}) as engine:
                for number in range(ROUNDS * 3 + 1):
                    chat = (await engine.create_chat("bench")).chat
                    await engine.send_message(chat, "Hello.")
                    await engine.settled(chat)
                    if number:
                        took.append((commits.at - clocked.last_at) * 1000)
                        stored.append((commits.at - commits.handed_at) * 1000)
        await clocked.close()
    median = statistics.median(took)
    print(f"\nfrom the last delta to the commit, {provider}, {url.partition(':')[0]}: {median:.2f} ms", end="")
    print(f" [{min(took):.2f} .. {max(took):.2f}], {statistics.median(stored):.2f} ms of it in the database")
    assert median < MOST_TO_COMMIT


async def test_many_chats_at_once(provider: str, tmp_path: Path) -> None:
    deltas = round(RATE * LASTING)
    async with service(provider, deltas, 1 / RATE) as base_url:
        made = make_provider(provider, ProviderSettings(base_url=base_url, api_key=KEY))
        agent = Agent(name="bench", model=f"{provider}/bench")
        settings = Settings(capacity=CHATS * 2)
        tune_collector()
        async with Engine(
            f"sqlite:///{tmp_path}/chats.db", [agent], providers={provider: made}, settings=settings
        ) as engine:
            chats = [(await engine.create_chat("bench")).chat for _ in range(CHATS)]
            start, used = time.perf_counter(), time.process_time()
            await asyncio.gather(*(engine.send_message(chat, "Hello.") for chat in chats))
            await asyncio.gather(*(engine.settled(chat) for chat in chats))
            wall, cpu = time.perf_counter() - start, time.process_time() - used
        await made.close()
    print(f"\n{CHATS} chats at {RATE:g} deltas a second, {provider}: {cpu / wall:.2f} cores for {wall:.1f} s")
    assert wall < LASTING * 1.5, "it must keep up with the service"
    assert cpu / wall < 1.0
