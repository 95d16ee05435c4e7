"""The plug-in where chatfold alone is installed, from its wheel: no extra, no tool of this project, but pytest."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.chatfold.plugin.conftest import EXTRAS
from tests.chatfold.plugin.test_plugin import write_log
from tests.meta.installed import Environment
from tests.meta.source import LAYERS, ROOT

OTHERS: Final = (*EXTRAS, "starlette", "uvicorn", "hypothesis", "mypy", "pip", "xdist")
"""What is not there: extras, and what only this project's tests need."""
_DEPENDENCIES: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]

SUITE: Final = """
import asyncio
import importlib.util
import sys

import chatfold
import pytest
from chatfold import Agent
from chatfold.testing import assert_replays, assert_reruns, assert_valid_prompts

AGENTS = [Agent(name="a", model="scripted")]


async def talk(engine):
    chat = (await engine.create_chat("a", "Hello.")).chat
    assert (await engine.settled(chat)).messages[-1].message.text == "Hi."
    return await engine.events(chat)


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_not_there(name):
    assert importlib.util.find_spec(name) is None


def test_it_is_the_installed_one():
    assert chatfold.__file__.startswith(sys.prefix)


@pytest.mark.chatfold_logs("logs")
def test_logs(chatfold_log):
    assert_replays(chatfold_log)
    assert_reruns(chatfold_log)
    assert_valid_prompts(chatfold_log)


def test_stores(chatfold_engine):
    async def run():
        async with chatfold_engine(AGENTS, script=["Hi."]) as engine:
            assert_replays(await talk(engine))

    asyncio.run(run())


def test_time(chatfold_clock, chatfold_provider):
    async def run():
        async with chatfold_clock.engine(AGENTS, providers={"scripted": chatfold_provider(["Hi."])}) as engine:
            await talk(engine)

    chatfold_clock.run(run)


def test_crashes(chatfold_crash):
    assert chatfold_crash(kills=1, chats=2, workers=1).violations == ()


def test_snapshots(chatfold_snapshot):
    pass
"""
OWN: Final = """
import sys

import events
import store


@pytest.mark.parametrize("number", [1, 2])
def test_ours(number):
    assert (events.MINE, store.MINE) == (1, 2)
    assert "chatfold.pytest_plugin" in sys.modules
    assert not {"chatstate", "generation"} & {name.partition(".")[0] for name in sys.modules}


def test_a_fixture(chatfold_clock):
    pass
"""
INI: Final = "[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with chatfold, what it needs, and pytest."""
    made = Environment(tmp_path_factory.mktemp("installed") / "venv")
    made.add([*_DEPENDENCIES, "pytest"])
    made.add_ours()
    return made


@pytest.fixture(scope="module")
def with_xdist(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The same with xdist."""
    made = Environment(tmp_path_factory.mktemp("installed") / "venv")
    made.add([*_DEPENDENCIES, "pytest", "pytest-xdist"])
    made.add_ours()
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose tests use all fixtures."""
    (tmp_path / "pytest.ini").write_text(INI, encoding="utf-8")
    (tmp_path / "test_suite.py").write_text(f"OTHERS = {OTHERS!r}\n{SUITE}", encoding="utf-8")
    write_log(tmp_path / "logs" / "one.jsonl", "Hi.")
    write_log(tmp_path / "logs" / "two.jsonl", "Hi.")
    return tmp_path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A project with packages of its own that are called as layers are."""
    (tmp_path / "pytest.ini").write_text(INI, encoding="utf-8")
    for place, name in enumerate(("events", "store"), 1):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"MINE = {place}\n", encoding="utf-8")
    (tmp_path / "test_own.py").write_text(f"import pytest\n{OWN}", encoding="utf-8")
    return tmp_path


def outcome(environment: Environment, project: Path, *options: str) -> tuple[str, str]:
    """Run a project's tests; return the last line, and all that was said."""
    done = environment.run("-m", "pytest", "-p", "no:cacheprovider", *options, cwd=project)
    said = done.stdout + done.stderr
    return said.strip().splitlines()[-1].strip("= ").partition(" in ")[0], said


@pytest.mark.timeout(300)
def test_alone(environment: Environment, project: Path) -> None:
    last, said = outcome(environment, project)
    assert last == f"{len(OTHERS) + 7} passed, 1 error", said
    assert "chatfold_snapshot needs syrupy: pip install 'chatfold[syrupy]'" in said
    assert "unrecognized arguments: -n" in outcome(environment, project, "-n", "2")[1]


@pytest.mark.timeout(300)
def test_with_xdist(with_xdist: Environment, project: Path) -> None:
    last, said = outcome(with_xdist, project, "-n", "2", "-k", "not is_not_there")
    assert last == "7 passed, 1 error", said
    assert "2 workers" in said


@pytest.mark.timeout(300)
def test_in_a_project_with_packages_of_our_names(environment: Environment, with_xdist: Environment, own: Path) -> None:
    for installed, options in ((environment, ()), (with_xdist, ("-n", "2"))):
        last, said = outcome(installed, own, *options)
        assert last == "2 passed, 1 error", said
        assert "LayerImportError: chatfold needs its own package 'events'" in said


@pytest.mark.timeout(300)
def test_logs_are_looked_at_and_kept(environment: Environment, project: Path) -> None:
    for folder in ("corpus", "kept"):
        (project / folder).mkdir()
    for command in (
        ["replay", "--decide", "logs", "--jobs", "1"],
        ["rerun", "logs", "--jobs", "1"],
        ["why", "logs/one.jsonl"],
        ["report", "logs/one.jsonl", "-o", "one.html"],
        ["record", "logs", "-o", "kept"],
        ["rerun", "kept", "--jobs", "1"],
        ["corpus", "add", "logs/one.jsonl", "corpus", "--note", "one"],
        ["corpus", "check", "corpus", "--jobs", "1"],
    ):
        done = environment.run("-m", "chatfold", *command, cwd=project)
        assert done.returncode == 0, (command, done.stdout, done.stderr)


def test_a_model_service_of_tests_says_what_it_needs(environment: Environment, tmp_path: Path) -> None:
    start = "from chatfold.testing.servers import AnthropicServer; AnthropicServer([]).start()"
    done = environment.run("-c", start, cwd=tmp_path)
    assert "needs the SDK that it serves: pip install 'chatfold[anthropic,openai]'" in done.stderr


def test_the_wheel_has_all_layers(environment: Environment, tmp_path: Path) -> None:
    asked = f"import importlib\nfor name in {LAYERS!r}: print(importlib.import_module(name).__file__)"
    done = environment.run("-c", asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all("site-packages" in line for line in done.stdout.splitlines())
