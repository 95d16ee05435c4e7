"""Looking at log files is done apart from everything: no connection, no other process, no tool, no model."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from generation.tools.execute import RunningCall
from tests.chatfold.cli.kit import Cli
from tests.chatfold.replaying.pair import log


@pytest.mark.parametrize(
    "command",
    [
        ["diff", "one.jsonl", "other.jsonl"],
        ["diff", "one.jsonl", "--at", "3"],
        ["bisect", "one.jsonl", "--when", "status == error"],
        ["graph", "one.jsonl", "--times"],
        ["graph", "one.jsonl", "--timeline"],
        ["report", "one.jsonl"],
    ],
    ids=" ".join,
)
def test_nothing_is_opened_started_or_run(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, order in (("one", "A-1"), ("other", "gone")):
        (tmp_path / f"{name}.jsonl").write_bytes(log(order))
    monkeypatch.chdir(tmp_path)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was not apart")

    for where, name in ((socket, "socket"), (socket, "socketpair"), (subprocess, "Popen"), (RunningCall, "__init__")):
        monkeypatch.setattr(where, name, never)
    done = Cli(tmp_path / "none.db").run(*command)
    assert done.out or done.err.startswith("one.jsonl: it holds at none")
    assert "should not have happened" not in done.err
    assert not (tmp_path / "none.db").exists()
