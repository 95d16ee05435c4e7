"""Workers of two neighbouring releases share a database while a service is upgraded, each in a real process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from chatfold import __version__
from chatfold.engine import Engine
from events.envelope import Recorded
from events.levels import FIRST
from events.parts import ToolCallPart
from events.vocabulary import Acquired, PolicyRecorded, StepCommitted
from store.contract import Header
from store.schema import READER_LEVEL
from tests.e2e.kit import PATIENCE
from tests.e2e.neighbour import RELEASE, make_next_release, make_previous_release
from tests.meta.source import ROOT

_WORKER: Final = """
import asyncio, sys
from chatfold import NOT_KNOWN, Agent, Engine, tool
from chatfold.settings import Settings
from chatfold.testing import ScriptedProvider, UseTool, turn

def model(request):
    return turn("Done.") if request.messages[-1].role == "tool" else turn(UseTool("pay", {}))

async def main(url, asked):
    settings = Settings(lease=2.0, poll=0.1)

    @tool(reconcile=(lambda context, arguments: NOT_KNOWN) if asked else None)
    async def pay() -> str:
        "Pay."
        return "paid"

    agent = Agent(name="helper", model="scripted", tools=[pay])
    models = {"scripted": ScriptedProvider(model)}
    async with Engine(url, agents=[agent], providers=models, settings=settings) as engine:
        print("ready", flush=True)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            print((await engine.create_chat("helper", "Hello", chat_id=line)).chat, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2] == "asked"))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, postgres_database: Callable[[], str]) -> str:
    return postgres_database() if request.param == "postgres" else f"sqlite:///{tmp_path}/shared.db"


@pytest.fixture(scope="module")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_next_release(tmp_path_factory.mktemp("next"))


@pytest.fixture(scope="module")
def previous_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_previous_release(tmp_path_factory.mktemp("previous"))


class Worker:
    """A worker process of some release."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def create(self, chat: str) -> None:
        """Have it create a chat."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{chat}\n".encode())
        assert await self.line() == chat

    async def line(self) -> str:
        """Return what it says next."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def worker_of(source: Path, url: str, tool: str = "reported") -> AsyncIterator[Worker]:
    """Run a worker of a release, whose agent has a tool that is ``reported`` or ``asked``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WORKER, url, tool, cwd=source, stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    worker = Worker(process)
    assert await worker.line() == "ready"
    try:
        yield worker
    finally:
        await process.communicate(b"\n")
        assert process.returncode == 0


async def command(source: Path, url: str, *arguments: str) -> tuple[int, str]:
    """Run the command line of a release."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "chatfold", *arguments, "--db", url, cwd=source, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
    )  # fmt: skip
    _, said = await process.communicate()
    return process.returncode or 0, said.decode()


async def releases(engine: Engine, chat: str) -> list[str]:
    """Return which releases ran a chat."""
    return [each.event.release for each in await engine.events(chat) if isinstance(each.event, Acquired)]


@pytest.mark.timeout(180)
async def test_an_upgrade_without_a_pause(url: str, next_release: Path) -> None:
    async with Engine(url, worker=False) as engine:
        async with worker_of(ROOT, url) as older:
            await older.create("before")
            assert await command(next_release, url, "migrate") == (0, f"{shown(url)} has schema 9999\n")
            async with worker_of(next_release, url) as newer:
                await older.create("by-the-older")
                await newer.create("by-the-newer")
                for chat in ("before", "by-the-older", "by-the-newer"):
                    assert (await engine.settled(chat)).control.status == "waiting"
                assert await releases(engine, "by-the-older") == [__version__]
                assert await releases(engine, "by-the-newer") == [RELEASE]
                code, said = await command(next_release, url, "migrate", "--finish")
                assert (code, f"release {__version__}" in said) == (1, True)
        headers = {header.chat: header.reader_level for header in await engine.list_chats()}
        assert set(headers.values()) == {READER_LEVEL}

        assert (await command(next_release, url, "migrate", "--finish"))[0] == 0
        async with worker_of(next_release, url) as newer:
            await newer.create("new-level")
            assert (await engine.settled("new-level")).control.status == "waiting"
        await engine.send_message("new-level", "Who takes this?")
        async with worker_of(ROOT, url):
            await engine.send_message("before", "And this?")
            assert (await engine.settled("before")).control.status == "waiting"
            found = await engine.diagnose("new-level")
            assert (found.status, found.advice) == ("pending", "Upgrade the workers.")
        async with worker_of(next_release, url):
            assert (await engine.settled("new-level")).control.status == "waiting"
        assert set(await releases(engine, "new-level")) == {RELEASE}


def reconciled(log: Sequence[Recorded]) -> tuple[bool, bool]:
    """Return whether a policy of a chat says that its tool can be asked, and whether a call does."""
    policies = [each.event.policy for each in log if isinstance(each.event, PolicyRecorded)]
    steps = [each.event for each in log if isinstance(each.event, StepCommitted)]
    parts = [part for step in steps for message in step.added for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    assert policies
    assert calls
    return any(tool.reconcile for each in policies for tool in each.tools), any(call.reconcile for call in calls)


@pytest.mark.timeout(180)
async def test_a_field_waits_until_all_can_read_it(url: str, previous_release: Path) -> None:
    """A tool that can be asked is only reported while a worker lives that does not know what asking is."""
    async with worker_of(previous_release, url) as older:
        await older.create("by-the-older")
        async with Engine(url, worker=False) as engine, worker_of(ROOT, url, "asked") as newer:
            await newer.create("by-the-newer")
            for chat in ("by-the-older", "by-the-newer"):
                assert (await engine.settled(chat)).control.status == "waiting"
                assert reconciled(await engine.events(chat)) == (False, False)
            code, said = await command(ROOT, url, "migrate", "--finish")
            assert (code, "workers of an older release are alive" in said) == (1, True)
        # Whoever ran them: the older one reads all of both.
        assert (await command(previous_release, url, "verify", "--all"))[0] == 0

    assert (await command(ROOT, url, "migrate", "--finish"))[0] == 0
    async with worker_of(ROOT, url, "asked") as newer, Engine(url, worker=False) as engine:
        await newer.create("asked")
        assert (await engine.settled("asked")).control.status == "waiting"
        assert reconciled(await engine.events("asked")) == (True, True)
    levels = {header.chat: header.reader_level for header in await headers(url)}
    assert levels == {"by-the-older": FIRST, "by-the-newer": FIRST, "asked": READER_LEVEL}

    assert (await command(previous_release, url, "verify", "asked"))[0] != 0, "it is one that does not know the field"
    async with Engine(url, worker=False) as engine:
        await engine.send_message("asked", "Who takes this?")
        async with worker_of(previous_release, url):
            await engine.send_message("by-the-newer", "And this?")
            assert (await engine.settled("by-the-newer")).control.status == "waiting"
            assert (await engine.state("asked")).control.status == "pending"
        async with worker_of(ROOT, url, "asked"):
            assert (await engine.settled("asked")).control.status == "waiting"
            await engine.send_message("by-the-newer", "And this, now?")
            assert (await engine.settled("by-the-newer")).control.status == "waiting"
            assert reconciled(await engine.events("by-the-newer")) == (False, False)


async def headers(url: str) -> Sequence[Header]:
    async with Engine(url, worker=False) as engine:
        return await engine.list_chats()


def shown(url: str) -> str:
    """Return a URL as commands show it."""
    from store import redacted

    return redacted(url)
