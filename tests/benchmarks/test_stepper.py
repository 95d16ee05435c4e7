"""How fast the debugger is on a log of 100,000 events: from the command to the first screen, and a jump to anywhere.

The log is one that the engine wrote: turns of ten events, with four decisions and a tool call each. Time that passes,
with the load beside it.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path
from typing import Final

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


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.jsonl"
    path.write_bytes(asyncio.run(talk(EVENTS // 10)))
    return path


@pytest.mark.bench
@pytest.mark.timeout(300)
def test_a_long_log_is_opened_at_once(file: Path) -> None:
    async def run() -> tuple[float, float]:
        start = time.perf_counter()
        app = StepApp(Stepper(opened(file)), str(file))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            first = time.perf_counter() - start
            while not app.stepper.ready:
                await pilot.pause(0.01)
            return first, time.perf_counter() - start

    first, ready = asyncio.run(run())
    size = file.stat().st_size / 1e6
    print(f"{EVENTS} events, {size:.0f} MB: first screen {first:.2f} s, state of the end {ready:.2f} s,", end=" ")
    print(f"load {os.getloadavg()[0]:.1f}")
    assert first < OPEN_SECONDS


@pytest.mark.bench
@pytest.mark.timeout(300)
def test_a_long_chat_of_a_store_is_opened_at_once(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"

    data = file.read_bytes()

    async def imported() -> str:
        async with Engine(url, worker=False) as engine:
            return str((await engine.import_log(data)).chat)

    async def run(name: str) -> tuple[float, float]:
        start = time.perf_counter()
        async with open_store(url) as store:
            chat = await StoredChat.opened(store, name)
            app = StepApp(Stepper(chat.log), f"{name}.jsonl", chat)
            async with app.run_test(size=(120, 40)) as pilot:
                await pilot.pause()
                first = time.perf_counter() - start
                while not app.stepper.ready:
                    await pilot.pause(0.01)
                return first, time.perf_counter() - start

    first, ready = asyncio.run(run(asyncio.run(imported())))
    print(f"{EVENTS} events in SQLite: first screen {first:.2f} s, state of the end {ready:.2f} s,", end=" ")
    print(f"load {os.getloadavg()[0]:.1f}")
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
