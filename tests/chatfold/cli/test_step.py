"""``step`` on the command line: what is refused before a screen is drawn, and the whole of it in a terminal."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from chatfold.cli.step import NEEDS
from tests.chatfold.cli.kit import Cli
from tests.chatfold.stepper.kit import written


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("logs"))


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "chats.db")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "26"], "has no version 26; its last is 25"),
        (["--follow"], "is a file, and does not grow"),
        (["--agents", "none.such:AGENTS"], "--agents none.such:AGENTS"),
        (["--break", "status == eror"], "character 11: status is never eror; did you mean error?"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, file: Path, arguments: list[str], said: str) -> None:
    ended = cli.run("step", str(file), *arguments)
    assert (ended.code, said in ended.err) == (2, True), ended.err


def test_a_log_that_is_not_there_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert cli.run("step", str(tmp_path / "none.jsonl")).code == 2
    ended = cli.run("step", "-")
    assert (ended.code, "save it in a file" in ended.err) == (2, True)


def test_without_a_terminal_it_ends(cli: Cli, file: Path) -> None:
    step = [sys.executable, "-m", "chatfold", "step", str(file)]
    ended = subprocess.run(step, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "step needs a terminal" in ended.stderr


def test_without_textual_it_says_what_to_install(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    ended = cli.run("step", str(file))
    assert (ended.code, NEEDS in ended.err) == (1, True)
