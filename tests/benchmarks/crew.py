"""The engine in several processes on one database, as a service uses the cores of its machine: a contender.

Run as a module it is one of these processes: it makes chats, runs turns in them when told to go, and says when it has
ended. Each process sends its own messages and runs its own chats, like one of the processes of a web server.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Final

from chatfold.collector import tune_collector
from tests.benchmarks.ours import Ours
from tests.benchmarks.work import STEPS

_ROOT: Final = Path(__file__).parents[2]


class Crew:
    """The engine with its worker in each of several processes."""

    def __init__(self, name: str, url: str, processes: int) -> None:
        self.name = name
        self._url = url
        self._count = processes
        self._processes: list[Process] = []

    async def open(self) -> None:
        for _ in range(self._count):
            command = (sys.executable, "-m", __name__, self._url)
            process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=_ROOT)
            await _answer(process, "open")  # one after the other: the first sets the database up
            self._processes.append(process)

    async def close(self) -> None:
        for process in self._processes:
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()

    async def steps_per_second(self, chats: int, turns: int) -> float:
        """Run turns in ``chats`` chats, as many in each process; from the first start to the last end."""
        share = chats // self._count
        await asyncio.gather(*(_ask(process, f"{share} {turns}", "made") for process in self._processes))
        start = time.perf_counter()
        await asyncio.gather(*(_ask(process, "go", "done") for process in self._processes))
        return share * self._count * turns * STEPS / (time.perf_counter() - start)


async def _ask(process: Process, question: str, answer: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{question}\n".encode())
    await process.stdin.drain()
    await _answer(process, answer)


async def _answer(process: Process, expected: str) -> None:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode().strip()
    assert line == expected, f"a process of the crew said {line!r} instead of {expected!r}"


async def _work(url: str) -> None:
    """Be one of the processes."""
    engine = Ours("one of several", url)
    await engine.open()
    print("open", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        count, turns = map(int, line.split())
        made = [await engine.new_chat() for _ in range(count)]
        tune_collector()
        print("made", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        await asyncio.gather(*(_talk(engine, chat, turns) for chat in made))
        print("done", flush=True)
    await engine.close()


async def _talk(engine: Ours, chat: str, turns: int) -> None:
    for _ in range(turns):
        await engine.turn(chat)


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
