"""Failpoints: how they are armed, what happens at them, and that each is a place that the code really comes to."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final, get_args

import pytest

from chatfold.engine import Engine
from chatfold.hooks import PythonHook
from chatfold.settings import Settings
from chatfold.stream import EventItem
from chatfold.testing import Fail, ScriptedProvider, UseTool, turn
from events.ids import ChatId
from generation.agents import Agent, Limits
from generation.errors import ClassifiedError
from generation.tools.contract import client_tool, tool
from store import Store
from store.contract import PartialChunk, Segment
from store.failpoints import POINTS, FailpointReached, InvalidFailpoints, Point, arm, armed, disarm, reach
from store.migrate import migrate
from tests.meta.source import ROOT, files_of_product

SQLITE_ALONE: Final[frozenset[Point]] = frozenset({"append.written"})


def test_unarmed_nothing_happens() -> None:
    for point in POINTS:
        reach(point)


def test_each_point_has_a_sentence() -> None:
    assert tuple(POINTS) == tuple(sorted(get_args(Point)))
    assert [point for point, said in POINTS.items() if not said.endswith(".")] == []


def test_each_point_stands_in_the_code() -> None:
    source = "".join(file.read_text(encoding="utf-8") for file in files_of_product())
    assert [point for point in POINTS if f'reach("{point}")' not in source] == []


def test_raise_happens_at_the_time_that_was_ordered() -> None:
    with armed("tool.done=raise@2; tool.starting=raise") as orders:
        reach("tool.done")
        with pytest.raises(FailpointReached, match=r"failpoint tool\.done"):
            reach("tool.done")
        reach("tool.done")
        with pytest.raises(FailpointReached):
            reach("tool.starting")
        reach("append.handed")
    reach("tool.starting")
    assert orders.reached == {"tool.done": 3, "tool.starting": 1, "append.handed": 1}


def test_raise_each_time() -> None:
    with armed("tool.done=raise@*"):
        for _ in range(3):
            with pytest.raises(FailpointReached):
                reach("tool.done")


def test_delay_blocks() -> None:
    with armed("tool.done=delay(0.05)"):
        before = time.monotonic()
        reach("tool.done")
        assert time.monotonic() - before >= 0.05


@pytest.mark.parametrize(
    "text", ["tool.done", "tool.done=", "tool.done=explode", "tool.done=kill@0", "tool.done=delay"]
)
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidFailpoints, match="POINT=ACTION"):
        arm(text)


def test_an_unknown_point_is_refused_with_the_list() -> None:
    with pytest.raises(InvalidFailpoints) as refused:
        arm("tool.doen=kill")
    assert "'tool.doen'" in str(refused.value)
    assert all(point in str(refused.value) for point in POINTS)


@pytest.mark.parametrize(("action", "number"), [("kill", signal.SIGKILL), ("stop", signal.SIGSTOP)])
def test_a_process_is_armed_from_its_start(action: str, number: signal.Signals) -> None:
    code = "from store.failpoints import reach; reach('tool.done'); reach('tool.done'); print('alive', flush=True)"
    environment = {**os.environ, "CHATFOLD_FAILPOINTS": f"tool.done={action}@2"}
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    try:
        if action == "stop":
            assert os.WIFSTOPPED(status)
            assert os.WSTOPSIG(status) == number
        else:
            assert os.WTERMSIG(status) == number
    finally:
        if os.WIFSTOPPED(status):
            process.send_signal(signal.SIGCONT)
        said, _ = process.communicate()
    assert said == (b"alive\n" if action == "stop" else b"")


def test_a_process_that_is_armed_wrongly_says_so() -> None:
    environment = {**os.environ, "CHATFOLD_FAILPOINTS": "nowhere=kill"}
    done = subprocess.run(
        [sys.executable, "-c", "import store.failpoints"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "there is no failpoint 'nowhere'" in done.stderr


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'chats.db'}?synchronous=normal&poll=0.02"
    make: Callable[[], str] = request.getfixturevalue("postgres_database")
    return make()


async def test_the_code_comes_to_each_point(url: str) -> None:
    try:
        counted = arm()
        migrate(url)
        await _everything(url)
    finally:
        disarm()
    expected = set(POINTS) - (set() if url.startswith("sqlite") else SQLITE_ALONE)
    assert set(counted.reached) == expected


async def _everything(url: str) -> None:
    """Live through all that has a point: a batch of tools, an action that expires, a retry, a worker that stops."""
    answers = [
        turn("Both.", UseTool("first"), UseTool("second")),
        turn(UseTool("ask")),
        turn(Fail(ClassifiedError(kind="generic", message="again", retryable=True))),
        turn("Done."),
    ]
    settings = Settings(lease=0.3, poll=0.02, grace=0.1, model_retry_unit=0.001)
    model = ScriptedProvider(answers)
    hooks = [PythonHook(lambda _: None, ["stop"])]
    async with Engine(url, [_agent()], providers={"scripted": model}, settings=settings, hooks=hooks) as engine:
        chat = (await engine.create_chat("all", "Do all.")).chat
        async with asyncio.timeout(30), aclosing(engine.stream(chat)) as stream:
            async for item in stream:
                if isinstance(item, EventItem) and item.recorded.event.type == "turn_finished":
                    break
        await engine.import_log(await engine.export_log(chat), as_id="copy")
        await engine.delete("copy")
        await _write_beside(engine.store, chat)


async def _write_beside(store: Store, chat: ChatId) -> None:
    """Write a piece of an answer and a segment."""
    loaded = await store.load_header(chat)
    assert loaded is not None
    await store.write_partials([PartialChunk(chat=chat, epoch=0, history_version=0, attempt=0, n=0, data=b"x")])
    last, digest = loaded.header.version, loaded.header.digest
    assert await store.write_segment(
        Segment(chat=chat, first_version=1, last_version=last, start=0, count=0, schema=0, digest=digest, data=b"")
    )


def _agent() -> Agent:
    @tool(crash="rerun")
    async def first() -> str:
        """Do the first thing."""
        return "first"

    @tool(crash="rerun")
    async def second() -> str:
        """Do the second thing."""
        await asyncio.sleep(0.01)
        return "second"

    ask = client_tool("ask", "Ask.", {"type": "object", "properties": {}})
    return Agent(name="all", model="scripted/any", tools=[first, second, ask], limits=Limits(action_timeout=0.1))
