"""A worker process is lost in the middle of its tools, gently or not; another process goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatfold.settings import Settings
from chatfold.testing.servers import Answer, ToolCall
from events.vocabulary import Acquired, Released
from tests.e2e.checks import check
from tests.e2e.kit import MODEL, PATIENCE, SETTINGS, Place, Scene, outputs, stage, texts
from tests.e2e.worker_process import tools

ROOT = Path(__file__).parents[2]
SCRIPT = [
    Answer([ToolCall("look"), ToolCall("act"), ToolCall("add", {"a": 1, "b": 2})]),
    Answer("One was lost."),
]
QUICK = Settings(**{**SETTINGS.model_dump(), "lease": 1.0, "grace": 0.1})


class WorkerProcess:
    """A worker process, and what it said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[str] = []

    async def until(self, *lines: str) -> None:
        """Wait until it has said all of some lines."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while not set(lines) <= set(self.said):
                line = await self.process.stdout.readline()
                assert line, f"the process ended; it said {self.said}"
                self.said.append(line.decode().strip())

    async def end(self, how: signal.Signals) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        self.process.send_signal(how)
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def worker_process(scene: Scene, *, stop: bool, **more: str) -> AsyncIterator[WorkerProcess]:
    """Start a worker in a process of its own; it is gone at the end."""
    order = {
        "provider": scene.place.provider,
        "base_url": scene.server.base_url,
        "agent": scene.place.agent,
        "model": f"{scene.place.provider}/{MODEL}",
        "stop": stop,
        "url": scene.place.url,
        "settings": QUICK.model_dump(),
        **more,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.e2e.worker_process", json.dumps(order), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield WorkerProcess(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["shutdown", "kill"])
async def test_takeover_in_the_middle_of_tools(place: Place, how: signal.Signals) -> None:
    async with (
        stage(place, SCRIPT, tools=tools(stop=False), worker=False, settings=QUICK) as scene,
        worker_process(scene, stop=True) as first,
    ):
        chat = await scene.start("Go")
        await first.until("begun look", "begun act")
        await scene.until(chat, lambda control: any(call.recorded for call in control.indexes.open_calls))
        assert await first.end(how) == (0 if how is signal.SIGTERM else -how)
        async with worker_process(scene, stop=False) as second:
            state = await scene.settled(chat)
            assert await second.end(signal.SIGTERM) == 0
            await second.until("begun look", "stopped")
        assert outputs(state) == ["look done", "worker_lost", 3]
        assert "begun act" not in second.said
        assert texts(state) == ["One was lost."]
        events = [each.event for each in await scene.engine.events(chat)]
        # On a busy machine the first worker's short lease may have lapsed: it then took the chat over from itself.
        holders = [event for event in events if isinstance(event, Acquired)]
        assert holders[-1].worker != holders[0].worker
        assert holders[-1].takeover is (how is signal.SIGKILL)
        assert state.control.epoch == len(holders) >= 2
        released = [event.reason for event in events if isinstance(event, Released)]
        assert released == (["shutdown"] if how is signal.SIGTERM else [])
        await check(scene, chat)
