"""No command that looks at a log, or runs it again, opens a connection, starts a process, runs a tool, asks a model.

In a process of its own, in which all of that raises.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from chatfold.cli.app import app
from tests.chatfold.cli.kit import Cli
from tests.corpus.make import FOLDER
from tests.meta.source import ROOT

AGENTS: Final = """
from dataclasses import replace

from tests.chatfold.cli.apart import never
from tests.corpus.kit import TOOLS, assistant

AGENTS = [assistant(tools=[replace(each, function=each.function and never(each.name)) for each in TOOLS])]
"""
RULES: Final = 'keep_keys = ["path"]\n'
POLICY: Final = "max_steps = 5\n"

FILES: Final[dict[str, int]] = {
    "show tools.jsonl": 0,
    "replay tools.jsonl": 0,
    "replay tools.jsonl --at 5": 0,
    "replay tools.jsonl --json": 0,
    "replay --decide tools.jsonl": 0,
    "replay --decide logs --jobs 1 --json": 0,
    "replay --decide tools.jsonl --policy policy.toml --all": 0,
    "rerun tools.jsonl": 0,
    "rerun logs --jobs 1 --json": 0,
    "rerun tools.jsonl --agents shop:AGENTS --keep-sections kept.json --show": 0,
    "why tools.jsonl": 0,
    "why tools.jsonl 5": 0,
    "why tools.jsonl --all --json": 0,
    "doctor tools.jsonl": 0,
    "diff tools.jsonl exclusive.jsonl": 1,
    "diff tools.jsonl --at 3 --to 9": 1,
    "bisect tools.jsonl --when 'rule == D11'": 0,
    "graph": 0,
    "graph tools.jsonl --times": 0,
    "graph tools.jsonl --states --dot": 0,
    "graph tools.jsonl --svg -o graph.svg": 0,
    "graph tools.jsonl --timeline": 0,
    "report tools.jsonl -o report.html": 0,
    "verify tools.jsonl": 0,
    "corpus check corpus --jobs 1": 0,
    "corpus coverage corpus --svg coverage.svg --missing": 0,
    "corpus add exclusive.jsonl corpus --note added --agents shop:AGENTS": 0,
    "corpus refold corpus": 0,
    "record tools.jsonl --redact rules.toml -o out": 0,
    "record logs --jobs 1 --errors -o others": 0,
}
"""Commands on files, with their exit codes: these need no event loop either."""

IN_A_LOOP: Final[dict[str, int]] = {
    "list": 0,
    "show CHAT": 0,
    "replay CHAT": 0,
    "replay --decide CHAT --jobs 1": 0,
    "rerun CHAT --jobs 1": 0,
    "why CHAT": 0,
    "doctor CHAT": 0,
    "diff CHAT tools.jsonl": 1,
    "bisect CHAT --when 'status == waiting'": 0,
    "report CHAT -o chat.html": 0,
    "verify --all": 0,
    "export CHAT --blobs -o exported.jsonl": 0,
    "record CHAT -o stored --jobs 1": 0,
    "fork CHAT --at 4 --as copied --yes": 0,
    "fork CHAT --message Hello --as asked --yes": 0,
    "step tools.jsonl": 0,
    "step CHAT": 0,
}
"""Commands on a chat in a store, and the debugger, whose event loops make a pair of sockets to wake themselves by."""

NOT_RUN: Final = {"demo", "chat", "worker", "import", "adopt", "repair", "migrate"}
"""Commands that talk to a model, or that change a store and look at no log's doings."""


def words(command: str, chat: str) -> list[str]:
    """Return a command's arguments."""
    parts = command.split("'")
    split = [word for place, part in enumerate(parts) for word in ([part] if place % 2 else part.split())]
    return [chat if word == "CHAT" else word for word in split]


def prepared(folder: Path) -> Cli:
    """Lay out what the commands work on; return the command line on its store."""
    (folder / "logs").mkdir()
    (folder / "corpus").mkdir()
    for name in ("tools", "exclusive"):
        shutil.copy(FOLDER / f"{name}.jsonl", folder)
    for name in (
        "answer",
        "given_up",
        "compact_asked",
        "approval",
        "client_tool",
        "interrupt_tools",
        "hooks",
        "context",
    ):
        shutil.copy(FOLDER / f"{name}.jsonl", folder / "logs")
    for suffix in (".jsonl", ".fold", ".md"):
        shutil.copy(FOLDER / f"max_steps{suffix}", folder / "corpus")
    for file, text in (("shop.py", AGENTS), ("rules.toml", RULES), ("policy.toml", POLICY)):
        (folder / file).write_text(text, encoding="utf-8")
    for name in ("out", "others", "stored"):
        (folder / name).mkdir()
    cli = Cli(folder / "chats.db")
    cli.ok("import", str(folder / "tools.jsonl"), "--adopt")
    return cli


def test_every_command_is_run_or_named() -> None:
    run = {command.split()[0] for command in (*FILES, *IN_A_LOOP)}
    assert set(vars(get_command(app))["commands"]) == run | NOT_RUN


def test_nothing_is_opened_started_or_run(tmp_path: Path) -> None:
    cli = prepared(tmp_path)
    chat = cli.ok("list", "--json").lines[0]["chat"]
    wanted = {**FILES, **IN_A_LOOP}
    commands = [(words(command, chat), command in IN_A_LOOP) for command in wanted]
    done = subprocess.run(
        [sys.executable, "-m", "tests.chatfold.cli.apart"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}", "CHATFOLD_DB": cli.url},
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    results = dict(zip(wanted, lines, strict=False))
    assert {command: line["found"] for command, line in results.items() if line["found"]} == {}
    codes = {command: (line["code"], line["err"]) for command, line in results.items()}
    assert {command: said for command, said in codes.items() if said[0] != wanted[command]} == {}
    controls = {line["control"]: bool(line["found"]) for line in lines[len(wanted) :]}
    assert controls == {"socket": True, "process": True, "tool": True, "loop": False}
    assert len(list((tmp_path / "out").iterdir())) == 1
    assert all((tmp_path / file).stat().st_size for file in ("report.html", "graph.svg", "coverage.svg", "kept.json"))
