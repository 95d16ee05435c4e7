"""How fast the debugger is on a log of 100,000 events: from the command to the first screen, and a jump to anywhere.

The log is one that the engine wrote: turns of ten events, with four decisions and a tool call each. Time that passes,
with the load beside it.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from chatfold.engine import Engine
from chatfold.stepper.app import StepApp
from chatfold.stepper.following import StoredChat
from chatfold.stepper.model import Stepper
from store import open_store
from tests.benchmarks.test_decision_replay import talk
from tests.chatfold.stepper.kit import opened

EVENTS: Final = 100_000
OPEN_SECONDS: Final = 2.0
JUMP_SECONDS: Final = 0.1
JUMPS: Final = 300
CHAT: Final = "long"

Place: TypeAlias = Callable[[Path], AbstractAsyncContextManager[StepApp]]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.jsonl"
    path.write_bytes(asyncio.run(talk(EVENTS // 10)))
    return path


@asynccontextmanager
async def of_a_file(file: Path) -> AsyncIterator[StepApp]:
    """Open the log file."""
    yield StepApp(Stepper(opened(file)), str(file))


@asynccontextmanager
async def of_a_store(file: Path) -> AsyncIterator[StepApp]:
    """Open the chat of the store beside the file."""
    async with open_store(_url(file)) as store:
        chat = await StoredChat.opened(store, CHAT)
        yield StepApp(Stepper(chat.log), f"{CHAT}.jsonl", chat)


async def imported(data: bytes, url: str) -> None:
    async with Engine(url, worker=False) as engine:
        await engine.import_log(data, as_id=CHAT)


def _url(file: Path) -> str:
    return f"sqlite:///{file.with_suffix('.db')}"


@pytest.mark.bench
@pytest.mark.timeout(300)
@pytest.mark.parametrize("place", [of_a_file, of_a_store])
def test_a_long_log_is_opened_at_once(file: Path, place: Place) -> None:
    async def run() -> tuple[float, float]:
        start = time.perf_counter()
        async with place(file) as app, app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            first = time.perf_counter() - start
            while not app.stepper.ready:
                await pilot.pause(0.01)
            return first, time.perf_counter() - start

    if place is of_a_store:
        asyncio.run(imported(file.read_bytes(), _url(file)))
    first, ready = asyncio.run(run())
    size, load = file.stat().st_size / 1e6, os.getloadavg()[0]
    print(f"{EVENTS} events, {size:.0f} MB, {place.__name__}: first screen {first:.2f} s,", end=" ")
    print(f"state of the end {ready:.2f} s, load {load:.1f}")
    assert first < OPEN_SECONDS


@pytest.mark.bench
@pytest.mark.timeout(300)
def test_a_jump_to_anywhere_in_a_long_log(file: Path) -> None:
    stepper = Stepper(opened(file))
    stepper.points.catch_up()
    taken: list[float] = []
    rng = random.Random(7)
    for _ in range(JUMPS):
        version = rng.randrange(stepper.last + 1)
        start = time.perf_counter()
        stepper.go(version)
        assert stepper.state.control.version == version
        taken.append(time.perf_counter() - start)
    taken.sort()
    print(
        f"jump: median {taken[JUMPS // 2] * 1e3:.1f} ms, worst {taken[-1] * 1e3:.1f} ms, load {os.getloadavg()[0]:.1f}"
    )
    assert taken[-1] <= JUMP_SECONDS
