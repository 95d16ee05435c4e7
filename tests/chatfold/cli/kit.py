"""Runs the command line for its tests, in this process and in others, and makes chats to look at."""

import asyncio
import json
import os
import pty
import re
import select
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from typer.testing import CliRunner

from chatfold.cli.app import app
from chatfold.engine import Engine
from chatfold.settings import Settings
from generation.agents import Agent
from generation.providers.script import UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import client_tool
from tests.meta.source import ROOT

PROGRAM: Final = (sys.executable, "-c", "from chatfold.cli.main import main; main()")
PATIENCE: Final = 30.0
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """What `--json` printed."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Cli:
    """The command line, in this process, on one database."""

    file: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.file}"

    def run(self, *arguments: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Ended:
        done = CliRunner().invoke(app, list(arguments), input=stdin, env={"CHATFOLD_DB": self.url, **(env or {})})
        return Ended(done.exit_code, done.stdout, done.stderr)

    def ok(self, *arguments: str, stdin: str | bytes | None = None) -> Ended:
        done = self.run(*arguments, stdin=stdin)
        assert done.code == 0, done
        return done

    def change(self, statement: str, *values: object) -> None:
        """Tamper with the database."""
        connection = sqlite3.connect(self.file)
        with connection:
            assert connection.execute(statement, values).rowcount > 0
        connection.close()


def made_chats(file: Path) -> None:
    """Make the chats of the template."""
    where = client_tool("where_am_i", "Ask the client.", {"type": "object", "properties": {}})
    agents = [
        Agent(name="assistant"),
        Agent(name="asking", model="scripted/x", tools=[where]),
        Agent(name="failing", model="nowhere/x"),
    ]
    model = ScriptedProvider([turn("One."), turn("Two."), turn("Hm. ", UseTool("where_am_i"))])
    url = f"sqlite:///{file}"

    async def make() -> None:
        async with Engine(url, agents[:2], providers={"scripted": model}, settings=Settings(db=url)) as engine:
            await engine.create_chat("assistant", "First", chat_id="talk", model="scripted/x", title="A talk")
            await engine.settled("talk")
            await engine.send_message("talk", "Second")
            await engine.settled("talk")
            await engine.create_chat("asking", "Where am I?", chat_id="asks")
            await engine.settled("asks")
        async with Engine(url, agents[2:], providers={"nowhere": Nowhere()}, settings=Settings(db=url)) as engine:
            await engine.create_chat("failing", "Fail", chat_id="broken")
            await engine.settled("broken")

    asyncio.run(make())


class Nowhere(ScriptedProvider):
    """A model that has no answer."""

    def __init__(self) -> None:
        super().__init__([], name="nowhere")


def environment(folder: Path, **more: str) -> dict[str, str]:
    """What a process gets: a database and a home below `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHATFOLD_", "PYTEST", "COV_"))}
    return kept | {
        "CHATFOLD_DB": f"sqlite:///{folder / 'chats.db'}",
        "CHATFOLD_GRACE": "0.2",
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        "TERM": "xterm",
        **more,
    }


def process(folder: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] = NOTHING) -> Ended:
    """Run a command as a process, to its end."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        cwd=folder,
        env=environment(folder, **env),
        timeout=PATIENCE,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


class Terminal:
    """A process on a terminal of its own, as a user has it.

    Args:
        folder: Where it runs.
        arguments: The command line.
        env: More of the environment.
    """

    def __init__(self, folder: Path, arguments: Sequence[str], **env: str) -> None:
        self.shown = ""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            os.chdir(folder)
            os.execve(PROGRAM[0], [*PROGRAM, *arguments], environment(folder, **env))  # noqa: S606

    def until(self, pattern: str) -> re.Match[str]:
        """Read on until the pattern is found in what was not looked at yet."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.shown)):
            assert self._read(deadline), f"ended before {pattern!r}: {self.shown}"
        self.shown = self.shown[found.end() :]
        return found

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def end(self, again: str = "") -> int:
        """Read to the end; return the exit code.

        Args:
            again: Keys to press once more whenever nothing comes for a while. As a user does with Ctrl-C at a prompt: a
                signal that arrives between the prompt and the wait for a key is noticed with the next key only.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            if again and not select.select([self._terminal], [], [], 2.0)[0] and time.monotonic() < deadline:
                self.type(again)
            elif not self._read(deadline):
                break
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing more came: {self.shown}"
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux says so when the other side has closed
            return False
        self.shown += data.decode()
        return bool(data)


def wait_for(fact: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


AGENTS: Final = """
import pathlib, threading
import anyio
from chatfold import Agent, tool

@tool
async def wait(seconds: int) -> str:
    '''Wait.'''
    pathlib.Path("started").touch()
    await anyio.sleep(seconds)
    return "waited"

@tool
def block(seconds: int) -> str:
    '''Wait and do not listen.'''
    pathlib.Path("started").touch()
    threading.Event().wait(seconds)
    return "blocked"

AGENTS = [Agent(name="patient", model="scripted/friendly", tools=[wait, block])]
"""
"""An application's agents: tools that take their time. They tell that they run by a file."""
