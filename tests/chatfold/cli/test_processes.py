"""The command line as real processes: signals, pipes, terminals, locales, and what is loaded when."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from chatfold.cli.logs import OURS
from chatfold.engine import Engine
from chatfold.settings import Settings
from events.envelope import Recorded
from generation.agents import Agent
from tests.chatfold.cli.kit import AGENTS, PROGRAM, Cli, Terminal, environment, process, wait_for
from tests.meta.source import ROOT

HEAVY: Final = (
    "anthropic",
    "openai",
    "sqlmodel",
    "sqlalchemy",
    "alembic",
    "psycopg",
    "pydantic_settings",
    "transitions",
)

LOADED: Final = """
import sys
from chatfold.cli.main import main
try:
    main()
finally:
    print(*sorted(name for name in sys.modules if "." not in name), file=sys.stderr)
"""


@pytest.fixture
def application(tmp_path: Path, template: Path) -> Path:
    """A folder with an application's agents, and a database."""
    (tmp_path / "chats.db").write_bytes(template.read_bytes())
    (tmp_path / "application.py").write_text(AGENTS)
    return tmp_path


def test_the_demo_needs_the_core_alone(tmp_path: Path) -> None:
    absent = ("anthropic", "openai", "psycopg", "psycopg_pool", "textual", "starlette", "uvicorn", "syrupy", "pytest")
    without = f"import sys; sys.modules.update(dict.fromkeys({absent!r})); {PROGRAM[2]}"
    done = subprocess.run(
        [sys.executable, "-c", without, "demo", "--delay", "0"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path, TMPDIR=str(tmp_path)),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Now look at any moment of it" in done.stdout
    assert [path.name for path in tmp_path.glob("chatfold-demo-*/chats.db")] == ["chats.db"]


def log_of(folder: Path, chat: str) -> list[Recorded]:
    url = f"sqlite:///{folder / 'chats.db'}"

    async def read() -> list[Recorded]:
        async with Engine(url, worker=False, settings=Settings(db=url)) as engine:
            return list(await engine.events(chat))

    return asyncio.run(read())


def test_help_is_quick_and_loads_little(tmp_path: Path) -> None:
    def take() -> tuple[float, subprocess.CompletedProcess[str]]:
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", LOADED, "--help"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(tmp_path))
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime, done

    # Time of the processor, and the best of three: a busy machine makes a start slow, nothing makes it fast.
    taken = [take() for _ in range(3)]
    done = taken[0][1]
    loaded = set(done.stderr.split())
    assert "typer" in loaded
    assert not loaded & {*HEAVY, "events", "chatstate", "store", "generation", "rich"}
    assert done.stdout.startswith("Usage: chatfold")
    assert min(seconds for seconds, _ in taken) < 0.5


def test_reading_a_file_loads_no_database(tmp_path: Path, cli: Cli) -> None:
    golden = ROOT / "tests" / "golden" / "v0.1" / "logs" / "retry.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "replay", str(golden)],
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
    )
    assert not set(done.stderr.split()) & {"sqlmodel", "sqlalchemy", "alembic", "anthropic", "openai"}


def test_a_foreign_layer_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "__init__.py").write_text("raise SystemExit('the foreign package ran')\n")
    done = process(tmp_path, "list", env={"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])})
    assert done.code == 1
    assert done.err.startswith("chatfold: chatfold needs its own package 'events'")
    assert done.err.count("\n") == 1


def test_nobody_reads_on(tmp_path: Path, template: Path) -> None:
    (tmp_path / "chats.db").write_bytes(template.read_bytes())
    command = f"{' '.join(map(repr, PROGRAM[:1]))} -c '{PROGRAM[2]}'"
    script = f"set -o pipefail; {command} replay talk --json | head -1; echo code $?"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment(tmp_path)
    )
    first, code = done.stdout.splitlines()
    assert '"event":"chat_created"' in first
    assert code in {"code 141", "code 0"}  # 0 where all was written before the reader left
    assert done.stderr == ""


def test_a_closed_pipe_is_no_error(tmp_path: Path, template: Path) -> None:
    (tmp_path / "chats.db").write_bytes(template.read_bytes())
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, "replay", "talk"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("encoding", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii:strict"}])
def test_any_locale_can_say_it(tmp_path: Path, template: Path, encoding: dict[str, str]) -> None:
    (tmp_path / "chats.db").write_bytes(template.read_bytes())
    said = "Grüße, 漢字 😀"
    done = process(tmp_path, "chat", said, "--chat", "c", env=encoding)
    assert done.code == 0, done.err
    assert "You said: Gr\\xfc\\xdfe, \\u6f22\\u5b57 \\U0001f600" in done.out
    again = process(tmp_path, "chat", "-c", "c", "-", stdin=said.encode(), env=encoding)
    assert again.code == 0, again.err
    line = process(tmp_path, "show", "c", "--json", env=encoding).out
    assert line.count(f'"{said}"') == 2
    Cli(tmp_path / "chats.db").ok("verify", "c")


def test_input_that_is_no_text_is_refused(tmp_path: Path) -> None:
    done = process(tmp_path, "chat", "-", stdin=b"\xff\xfe", env={"PYTHONIOENCODING": "utf-8:surrogateescape"})
    assert (done.code, done.err) == (2, "chatfold: the input is not UTF-8\n")


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_colours_unless_it_says_no(tmp_path: Path, template: Path, colour: bool) -> None:
    (tmp_path / "chats.db").write_bytes(template.read_bytes())
    terminal = Terminal(tmp_path, ["replay", "talk"], **({} if colour else {"NO_COLOR": "1"}), COLUMNS="60")
    assert terminal.end() == 0
    assert ("\x1b[32m" in terminal.shown) is colour
    lines = terminal.shown.replace("\r", "").splitlines()
    assert any("step_committed" in line and "running R0" in line for line in lines)
    assert any(line.startswith("      ") and "finish(complete)" in line for line in lines)
    assert "\x1b" not in process(tmp_path, "replay", "talk").out


def test_a_talk_at_a_terminal(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, ["chat", "--chat", "c"])
    terminal.until("Ctrl-D ends the talk")
    terminal.until("> ")
    terminal.type("please ask me\n")
    terminal.until(r"Its result \(JSON, or any text\): ")
    terminal.type("forty-two\n")
    terminal.until("ask_user says: forty-two")
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "go on with --chat c" in terminal.shown


def test_ctrl_c_at_the_prompt_leaves(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, ["chat"])
    terminal.until("> ")
    terminal.type("\x03")
    assert terminal.end(again="\x03") == 130
    assert "Traceback" not in terminal.shown


def test_ctrl_c_interrupts_the_turn_and_the_talk_goes_on(application: Path) -> None:
    terminal = Terminal(application, ["chat", "-c", "c", "--agents", "application:AGENTS"])
    terminal.until("> ")
    terminal.type("wait 60\n")
    terminal.until(r"\[calls wait")
    wait_for((application / "started").exists)
    terminal.type("\x03")
    terminal.until("interrupting; Ctrl-C once more leaves")
    terminal.until(r"\[interrupted")
    terminal.until("> ")
    terminal.type("Hello\n")
    terminal.until("You said: Hello")
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "turn_interrupted" in [each.event.type for each in log_of(application, "c")]


def test_ctrl_c_ends_the_only_turn(application: Path) -> None:
    terminal = Terminal(application, ["chat", "wait 60", "-c", "c", "--agents", "application:AGENTS"])
    wait_for((application / "started").exists)
    os.kill(terminal.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert log_of(application, "c")[-1].event.type == "interruption_finished"


def test_a_second_ctrl_c_leaves(application: Path) -> None:
    terminal = Terminal(
        application, ["chat", "block 25", "-c", "c", "--agents", "application:AGENTS"], CHATFOLD_GRACE="2"
    )
    wait_for((application / "started").exists)
    os.kill(terminal.pid, signal.SIGINT)
    terminal.until("interrupting; Ctrl-C once more leaves")
    os.kill(terminal.pid, signal.SIGINT)
    begin = time.monotonic()
    assert terminal.end() == 130
    assert time.monotonic() - begin < 15
    assert "Traceback" not in terminal.shown


ENGINE: Final = """
import os, pathlib
from chatfold import Engine
from chatfold.hooks import PythonHook
from application import AGENTS

async def watch(call):
    pathlib.Path("hooked").write_text(call.event)

def make_engine():
    return Engine(os.environ["CHATFOLD_DB"], AGENTS, hooks=[PythonHook(watch, ["pre_tool_use"])])

def make_reader():
    return Engine(os.environ["CHATFOLD_DB"], AGENTS, worker=False)
"""


@pytest.mark.parametrize(
    ("number", "what"),
    [
        (signal.SIGTERM, ("--agents", "application:AGENTS")),
        (signal.SIGINT, ("--agents", "application:AGENTS")),
        (signal.SIGTERM, ("--engine", "service:make_engine")),
    ],
    ids=["SIGTERM", "SIGINT", "engine"],
)
def test_a_worker_drains(application: Path, number: signal.Signals, what: tuple[str, str]) -> None:
    (application / "service.py").write_text(ENGINE)
    url = f"sqlite:///{application / 'chats.db'}"

    async def begin() -> None:
        agent = Agent(name="patient", model="scripted/friendly")
        async with Engine(url, [agent], worker=False, settings=Settings(db=url)) as engine:
            await engine.create_chat("patient", "wait 60", chat_id="c")

    asyncio.run(begin())
    worker = subprocess.Popen(
        [*PROGRAM, "worker", *what, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=application,
        env=environment(application),
    )
    wait_for((application / "started").exists)
    worker.send_signal(number)
    out, err = worker.communicate(timeout=20)
    assert (worker.returncode, err) == (0, "")
    assert [line.split('"state":')[1].split(",")[0] for line in out.splitlines()] == [
        '"started"',
        '"draining"',
        '"stopped"',
    ]
    last = log_of(application, "c")[-1]
    assert (last.event.type, last.envelope.dest) == ("released", "pending")
    assert getattr(last.event, "reason", None) == "drain"
    assert process(application, "verify", "--all").code == 0
    assert (application / "hooked").exists() is ("--engine" in what), "an engine brings its hooks"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("service:make_engine", "--db", "memory://"), "--engine brings its own of --db: leave that out"),
        (("service:make_engine", "--agents", "application:AGENTS"), "--engine brings its own of --agents"),
        (("application:AGENTS",), "--engine application:AGENTS is no Engine"),
        (("service:none",), "--engine service:none cannot be loaded: AttributeError"),
        (("service",), "--engine service: give MODULE:NAME, such as myservice.engine:make_engine"),
        (("service:make_reader",), "--engine has no worker: make the engine without worker=False"),
    ],
)
def test_a_worker_of_no_engine_says_so(application: Path, given: tuple[str, ...], said: str) -> None:
    (application / "service.py").write_text(ENGINE)
    done = process(application, "worker", "--engine", *given)
    assert (done.code, said in done.err, "Traceback" in done.err) == (2, True, False), done


def test_logs_go_to_stderr(tmp_path: Path) -> None:
    done = process(tmp_path, "chat", "Secret words", "--log-level", "info")
    assert done.code == 0
    assert " info generation." in done.err
    assert "event_appended" in done.err
    assert "Secret" not in done.err
    loggers = {line.split()[2].partition(".")[0] for line in done.err.splitlines() if " info " in line}
    assert loggers <= set(OURS)  # not those of the libraries, Alembic's and transitions' among them
    assert done.out.startswith("You said: Secret words")
