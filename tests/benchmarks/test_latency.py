"""How long it takes from the commit of a user's message to the call of the model: in one process, and across two."""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.testing.stores import CallName, WrappedStore
from events.ids import ChatId
from events.messages import Usage
from generation.agents import Agent
from generation.prompt_types import ModelRequest
from generation.providers.contract import Finish, StreamPart, TextDelta, TextEnd, UsageSoFar
from store import open_store
from store.contract import Append
from tests.meta.source import ROOT

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]

TIMES: Final = 40
MOST: Final = {"in one process": 2.0, "sqlite": 80.0, "postgres": 10.0}
"""Milliseconds that the median may take."""


class Clocked:
    """A model that tells when it is called, and answers at once."""

    name = "clocked"

    def __init__(self, called: Callable[[float], None]) -> None:
        self._called = called

    async def close(self) -> None:
        """Close nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Answer."""
        self._called(time.monotonic())
        yield TextDelta(block=0, text=f"Answer {len(request.messages)}.")
        yield TextEnd(block=0)
        yield Finish(reason="stop", usage=Usage(input=1, output=1))


AGENT: Final = Agent(name="bench", model="clocked/one")


class Commits(WrappedStore):
    """Notes when the append of a user's message was committed."""

    at = 0.0
    _sent = False

    def before(self, name: CallName, chat: ChatId | None = None, append: Append | None = None) -> None:
        """Note what an append is about."""
        del chat
        if name == "append" and append is not None:
            self._sent = append.events[0].stored.envelope.type == "message_sent"

    def after(self, name: CallName) -> None:
        """Note when it is through."""
        if name == "append" and self._sent:
            self.at = time.monotonic()


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which database."""
    return str(request.param)


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Its URL."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/chats.db"
    make: Callable[[], str] = request.getfixturevalue("durable_database")
    return make()


async def measured(engine: Engine, commits: Commits, called: asyncio.Queue[float]) -> list[float]:
    """Return milliseconds from commit to call, one message after the other."""
    chat = (await engine.create_chat("bench")).chat
    took: list[float] = []
    for number in range(TIMES + 5):
        await engine.send_message(chat, f"Message {number}.")
        at = await called.get()
        if number >= 5:
            took.append((at - commits.at) * 1000)
        await engine.settled(chat)
        await asyncio.sleep(0.03)  # the machine is idle but for this
    return took


def report(what: str, took: list[float], most: float) -> None:
    """Print and hold to the bar."""
    median = statistics.median(took)
    print(f"\nfrom commit to model call, {what}: {median:.2f} ms [{min(took):.2f} .. {max(took):.2f}]")
    assert median <= most


async def test_in_one_process(kind: str, url: str) -> None:
    called: asyncio.Queue[float] = asyncio.Queue()
    commits = Commits(open_store(url))
    async with Engine(commits, agents=[AGENT], providers={"clocked": Clocked(called.put_nowait)}) as engine:
        report(f"{kind}, in one process", await measured(engine, commits, called), MOST["in one process"])


async def test_across_processes(kind: str, url: str) -> None:
    commits = Commits(open_store(url))
    async with Engine(commits, worker=False) as engine, worker(url) as called:
        report(f"{kind}, across processes", await measured(engine, commits, called), MOST[kind])


@asynccontextmanager
async def worker(url: str) -> AsyncIterator[asyncio.Queue[float]]:
    """Run a worker in a process of its own; what it gives tells when the model was called."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.benchmarks.test_latency",
        url,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).strip() == b"ready"
    called: asyncio.Queue[float] = asyncio.Queue()
    reader = asyncio.create_task(_read(process.stdout, called))
    try:
        yield called
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await reader


async def _read(lines: asyncio.StreamReader, called: asyncio.Queue[float]) -> None:
    async for line in lines:
        called.put_nowait(float(line))


async def _main(url: str) -> None:
    providers = {"clocked": Clocked(lambda at: print(at, flush=True))}
    async with Engine(url, agents=[AGENT], providers=providers, settings=Settings()):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
