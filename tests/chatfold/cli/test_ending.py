"""Processes that must end although something does not: a tool's thread, a database that somebody else holds."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from chatfold import Engine, Settings
from events.ids import ChatId
from generation.agents import Agent
from tests.chatfold.cli.kit import PROGRAM, Terminal, environment, wait_for
from tests.meta.pages import read
from tests.meta.source import ROOT

AGENTS: Final = """
import asyncio, pathlib, threading
from chatfold import Agent, tool

def work():
    pathlib.Path("started").touch()
    threading.Event().wait(100)

@tool
def block() -> str:
    '''Do not listen.'''
    work()
    return "done"

@tool
async def hand_over() -> str:
    '''Let another thread not listen.'''
    await asyncio.to_thread(work)
    return "done"

AGENTS = [Agent(name="patient", model="scripted/friendly", tools=[block, hand_over])]
"""

SOON: Final = 15.0
"""Seconds after which a process waits for what it need not; a busy machine makes one slow."""


@pytest.fixture
def application(tmp_path: Path, template: Path) -> Path:
    """A folder with an application's agents, and a database."""
    (tmp_path / "chats.db").write_bytes(template.read_bytes())
    (tmp_path / "application.py").write_text(AGENTS)
    return tmp_path


def started(folder: Path, command: Sequence[str], **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(folder, PYTHONPATH=os.pathsep.join([str(ROOT), str(folder)]), **env),
    )


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'chats.db'}"


def begin(folder: Path, message: str) -> None:
    async def create() -> None:
        agent = Agent(name="patient", model="scripted/friendly")
        async with Engine(url_of(folder), [agent], worker=False, settings=Settings()) as engine:
            await engine.create_chat("patient", message, chat_id="c")

    asyncio.run(create())


def is_free(folder: Path, chat: str) -> bool:
    """Whether nobody has the chat: it is not held, or by a worker without a lease."""

    async def look() -> bool:
        async with Engine(url_of(folder), worker=False, settings=Settings()) as engine:
            loaded = await engine.store.load_header(ChatId(chat))
            return loaded is not None and not loaded.holder_alive

    return asyncio.run(look())


@pytest.mark.parametrize("tool", ["block", "hand_over"])
def test_a_talk_ends_without_its_tools_thread(application: Path, tool: str) -> None:
    talk = started(application, [*PROGRAM, "chat", tool, "-c", "c", "--agents", "application:AGENTS"])
    wait_for((application / "started").exists)
    talk.send_signal(signal.SIGINT)
    out, err = talk.communicate(timeout=SOON)
    assert talk.returncode == 130
    assert out.startswith("Let me use ")
    assert err.endswith("[interrupted]\nchat c; go on with --chat c\n")
    assert "Traceback" not in err


@pytest.mark.parametrize("tool", ["block", "hand_over"])
def test_a_worker_ends_without_its_tools_thread(application: Path, tool: str) -> None:
    begin(application, tool)
    worker = started(application, [*PROGRAM, "worker", "--agents", "application:AGENTS", "--json"])
    wait_for((application / "started").exists)
    worker.send_signal(signal.SIGTERM)
    out, err = worker.communicate(timeout=SOON)
    assert worker.returncode == 0
    assert out.splitlines()[-1].endswith('"state":"stopped","agents":["patient"]}')
    assert "Traceback" not in err


def test_two_signals_end_a_worker_at_once_and_its_chats_are_free(application: Path) -> None:
    begin(application, "block")
    worker = started(
        application, [*PROGRAM, "worker", "--agents", "application:AGENTS"], CHATFOLD_GRACE="60", CHATFOLD_LEASE="60"
    )
    wait_for((application / "started").exists)
    worker.send_signal(signal.SIGTERM)
    assert worker.stderr is not None
    for line in worker.stderr:
        if line.startswith("stopping"):
            break
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=SOON)
    assert worker.returncode == 128 + signal.SIGTERM
    assert is_free(application, "c")


def test_two_ctrl_cs_end_a_talk_at_once_and_its_chat_is_free(application: Path) -> None:
    talk = Terminal(
        application,
        ["chat", "block", "-c", "c", "--agents", "application:AGENTS"],
        CHATFOLD_GRACE="60",
        CHATFOLD_LEASE="60",
    )
    wait_for((application / "started").exists)
    talk.type("\x03")
    talk.until("interrupting; Ctrl-C once more leaves")
    talk.type("\x03")
    pressed = time.monotonic()
    assert talk.end() == 130
    assert time.monotonic() - pressed < SOON
    assert "go on with --chat c" in talk.shown
    assert is_free(application, "c")


def test_a_locked_database_is_said_and_left_by_two_ctrl_cs(application: Path) -> None:
    lock = sqlite3.connect(application / "chats.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    talk = started(application, [*PROGRAM, "chat", "Hello"], CHATFOLD_DB=f"{url_of(application)}?busy_timeout=60")
    assert talk.stderr is not None
    said = talk.stderr.readline()
    file = application / "chats.db"
    assert said == (
        f"chatfold: {file} is locked by another process, waiting; `fuser -v {file}` shows which have it open\n"
    )
    deadline = time.monotonic() + SOON
    while talk.poll() is None:  # the second may come before the first was taken, and count as one with it
        assert time.monotonic() < deadline
        talk.send_signal(signal.SIGINT)
        time.sleep(0.05)
    assert (talk.returncode, talk.stderr.read(), talk.communicate()[0]) == (130, "", "")
    lock.close()


def test_a_locked_database_ends_in_one_sentence(application: Path) -> None:
    lock = sqlite3.connect(application / "chats.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    talk = started(application, [*PROGRAM, "chat", "Hello"], CHATFOLD_DB=f"{url_of(application)}?busy_timeout=0.01")
    out, err = talk.communicate(timeout=SOON)
    assert (talk.returncode, out) == (1, "")
    file = application / "chats.db"
    assert err.splitlines()[-1].startswith(f"chatfold: {file}: database is locked by another process; `fuser -v ")
    lock.close()


SERVICE: Final = """
import asyncio
from application import AGENTS
from chatfold import Engine
helper = AGENTS[0]
{blocks}
asyncio.run(serve({url!r}))
print("left", flush=True)
end_process(7)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_service_of_the_documentation_ends_when_it_is_told_to(application: Path, number: signal.Signals) -> None:
    page = read(ROOT / "docs" / "embedding.md")
    names = ("async def serve(", "def end_process(")
    blocks = [block.text for block in page.blocks if any(name in block.text for name in names)]
    assert len(blocks) == 2
    begin(application, "block")
    program = SERVICE.format(blocks="\n".join(blocks), url=url_of(application))
    service = started(application, [sys.executable, "-c", program])
    wait_for((application / "started").exists)
    service.send_signal(number)
    out, err = service.communicate(timeout=SOON)
    assert (service.returncode, out) == (7, "left\n"), err
    assert is_free(application, "c")
