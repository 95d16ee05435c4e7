"""Workers of two neighbouring releases share a database while a service is upgraded, each in a real process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from chatfold import __version__
from chatfold.engine import Engine
from events.vocabulary import Acquired
from store.schema import READER_LEVEL
from tests.e2e.kit import PATIENCE
from tests.e2e.neighbour import RELEASE, make_next_release
from tests.meta.source import ROOT

_WORKER: Final = """
import asyncio, sys
from chatfold import Agent, Engine
from chatfold.settings import Settings

async def main(url):
    settings = Settings(lease=2.0, poll=0.1)
    async with Engine(url, agents=[Agent(name="helper", model="scripted")], settings=settings) as engine:
        print("ready", flush=True)
        while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
            print((await engine.create_chat("helper", "Hello", chat_id=line)).chat, flush=True)

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, postgres_database: Callable[[], str]) -> str:
    return postgres_database() if request.param == "postgres" else f"sqlite:///{tmp_path}/shared.db"


@pytest.fixture(scope="module")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_next_release(tmp_path_factory.mktemp("next"))


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
async def worker_of(source: Path, url: str) -> AsyncIterator[Worker]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WORKER, url, cwd=source, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
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


def shown(url: str) -> str:
    """Return a URL as commands show it."""
    from store import redacted

    return redacted(url)
