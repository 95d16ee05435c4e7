"""`rerun` says of each log whether it comes out again, and where it parts, in words and as JSON."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from chatfold.engine import Engine
from chatfold.testing import turn
from generation.prompt_texts import summarised
from tests.chatfold.cli.kit import Cli
from tests.chatfold.rerunning.kit import ANSWERS, written

AGENTS = """
from generation.agents import Agent
from generation.tools.contract import Tool
from tests.chatfold.rerunning.kit import look_up

TOOLS = [Tool.from_function(look_up, crash="rerun")]
AGENTS = [Agent(name="support", model="scripted", system="{system}", tools=TOOLS)]
"""


@pytest.fixture(scope="module")
def log() -> bytes:
    """A log of two turns."""
    return asyncio.run(written())


@pytest.fixture
def folder(tmp_path: Path, log: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with that log in it."""
    (tmp_path / "help.jsonl").write_bytes(log)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def declared(folder: Path, name: str, system: str) -> str:
    """Write a module with the agents, and return what names them."""
    (folder / f"{name}.py").write_text(AGENTS.format(system=system))
    return f"{name}:AGENTS"


def test_a_log_that_comes_out_again(cli: Cli, folder: Path) -> None:
    done = cli.ok("rerun", "help.jsonl")
    assert done.out == "help.jsonl: all 16 events came out again\n"
    assert done.err == ""


def test_a_chat_of_the_store(chats: Cli) -> None:
    assert chats.ok("rerun", "talk").out == "talk: all 11 events came out again\n"
    assert chats.ok("rerun", "-", stdin=chats.ok("export", "asks").out).out.endswith("events came out again\n")


def test_many_logs_at_once(cli: Cli, folder: Path, log: bytes) -> None:
    for number in range(3):
        (folder / f"more-{number}.jsonl").write_bytes(log)
    (folder / "bad.jsonl").write_text("no log\n")
    done = cli.run("rerun", ".", "--jobs", "2")
    assert done.code == 1
    said = [line.partition(": ")[2] for line in done.out.splitlines()]
    assert said[1:] == ["all 16 events came out again"] * 4
    assert "line 1" in said[0]
    assert done.err == "4 of 5 logs came out the same\n"


@pytest.mark.odd_decisions("another rule is run")
def test_where_it_parts(cli: Cli, folder: Path) -> None:
    with patch("generation.outcomes.result_at", lambda result, _: replace(result, is_error=True)):
        done = cli.run("rerun", "help.jsonl")
        (line,) = cli.run("rerun", "help.jsonl", "--json").lines
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0] == "help.jsonl: 6 of 16 events came out again; it parts at version 7"
    assert [each.split()[0] for each in lines[1:4]] == ["4", "5", "6"]
    assert lines[4] == "then:"
    assert lines[5].split()[0] == "7"
    assert lines[6] == "now:"
    assert lines[8].strip() == "$.result.is_error: false -> true"
    assert {name: line[name] for name in ("kind", "log", "same", "version", "difference", "again", "events")} == {
        "kind": "rerun",
        "log": "help.jsonl",
        "same": False,
        "version": 7,
        "difference": "event",
        "again": 6,
        "events": 16,
    }
    assert line["changes"] == [{"path": "$.result.is_error", "before": False, "after": True}]
    assert [event["version"] for event in line["before"]] == [4, 5, 6]
    assert (line["then"]["event"], line["now"]["event"]) == ("tool_result_recorded", "tool_result_recorded")


def test_a_prompt_that_changed_is_named_and_shown(cli: Cli, folder: Path) -> None:
    then, now = declared(folder, "agents_then", "You help with orders."), declared(folder, "agents_now", "You help.")
    done = cli.ok("rerun", "help.jsonl", "--agents", then, "--keep-sections", "help.sections.json")
    assert done.out == "help.jsonl: all 16 events came out again\n"
    assert done.err.startswith("what today's requests say is kept in help.sections.json")
    done = cli.run("rerun", "help.jsonl", "--agents", now, "--show")
    assert done.code == 1
    assert done.out.splitlines() == [
        "help.jsonl: all 16 events came out again; requests differ",
        "  system: another text in 3 requests, first at version 5",
        "    @@ -1 +1 @@",
        "    -You help with orders.",
        "    +You help.",
    ]
    (line,) = cli.run("rerun", "help.jsonl", "--agents", now, "--json").lines
    assert (line["same"], line["version"]) == (False, None)
    (section,) = line["sections"]
    assert (section["section"], section["requests"], section["shown"]) == ("system", 3, [])
    assert cli.ok("rerun", "help.jsonl", "--agents", now, "--ignore-sections", "system, tools").out.count("\n") == 1
    (folder / "help.sections.json").unlink()
    assert "not at hand" in cli.run("rerun", "help.jsonl", "--agents", now, "--show").out


def test_a_file_of_sections_can_be_named(cli: Cli, folder: Path) -> None:
    then = declared(folder, "agents_kept", "You help with orders.")
    cli.ok("rerun", "help.jsonl", "--agents", then, "--keep-sections", "kept.json")
    now = declared(folder, "agents_other", "Else.")
    done = cli.run("rerun", "help.jsonl", "--agents", now, "--sections", "kept.json", "--show")
    assert "+Else." in done.out


USAGE: dict[str, tuple[tuple[str, ...], str]] = {
    "no such section": (("help.jsonl", "--ignore-sections", "sytem"), "there is no section 'sytem'; there are: system"),
    "nothing to keep": (("help.jsonl", "--keep-sections", "x.json"), "name them with --agents"),
    "no such agents": (("help.jsonl", "--agents", "nowhere:AGENTS"), "cannot be loaded"),
    "a log in the place of sections": (
        ("help.jsonl", "--sections", "help.jsonl"),
        "help.jsonl is no file of sections: it looks like a log",
    ),
    "no sections": (("help.jsonl", "--sections", "none.json"), "none.json cannot be read: No such file"),
    "no log in the folder": (("empty",), "there are no log files"),
}


@pytest.mark.parametrize("what", USAGE)
def test_what_cannot_be_meant_is_said(cli: Cli, folder: Path, what: str) -> None:
    (folder / "empty").mkdir()
    arguments, said = USAGE[what]
    done = cli.run("rerun", *(f"./{each}" if each == "empty" else each for each in arguments))
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_a_file_that_is_not_there_is_said_beside_the_others(cli: Cli, folder: Path) -> None:
    done = cli.run("rerun", "none.jsonl", "help.jsonl", "--jobs", "1")
    assert done.code == 1
    first, second = done.out.splitlines()
    assert "there is no file none.jsonl" in first
    assert second == "help.jsonl: all 16 events came out again"


def test_what_is_not_there_alone_is_a_wrong_command_line(chats: Cli) -> None:
    done = chats.run("rerun", "nobody")
    assert (done.code, done.out) == (2, "")
    assert done.err == "chatfold: there is no chat nobody; `chatfold list` shows which chats there are\n"
    assert chats.run("rerun", "none.jsonl").code == 2


def test_a_chat_that_is_not_there_is_said_beside_the_others(chats: Cli, tmp_path: Path) -> None:
    said = "nobody: there is no chat nobody; `chatfold list` shows which chats there are"
    done = chats.run("rerun", "nobody", "talk", "--jobs", "1")
    assert (done.code, done.out.splitlines()[0]) == (1, said)
    assert done.err == "1 of 2 logs came out the same\n"
    assert said in chats.run("replay", "--decide", "nobody", "talk", "--jobs", "1").out
    assert said in chats.run("doctor", "nobody", "talk", "--jobs", "1").out
    assert said in chats.run("record", "nobody", "--output", str(tmp_path / "out")).out


@pytest.mark.odd_reruns("another text is taken")
@pytest.mark.odd_prompts("another text is taken")
def test_contents_of_one_size_are_not_said_to_be_the_same(cli: Cli, folder: Path) -> None:
    async def compacts(engine: Engine, chat: str) -> None:
        await engine.compact(chat)

    (folder / "help.jsonl").write_bytes(asyncio.run(written((*ANSWERS[:2], turn("They talked.")), compacts)))
    with patch("generation.actions.compaction.summarised", lambda text: summarised(text).upper()):
        done = cli.run("rerun", "help.jsonl")
    (line,) = [line for line in done.out.splitlines() if "$.added[0].parts[0].text" in line]
    then, now = line.partition(": ")[2].split(" -> ")
    assert now == f"another one of {then}"


def test_an_altered_log_is_not_run(cli: Cli, folder: Path, log: bytes) -> None:
    lines = log.splitlines(keepends=True)
    event = json.loads(lines[5])
    event["recorded_at"] = event["recorded_at"] + 1
    lines[5] = json.dumps(event, separators=(",", ":")).encode() + b"\n"
    (folder / "help.jsonl").write_bytes(b"".join(lines))
    done = cli.run("rerun", "help.jsonl")
    assert done.code == 1
    assert "it was altered, from version 5 on" in done.out


def test_no_connection_is_opened_and_no_process_started(cli: Cli, folder: Path) -> None:
    def raises(*_: object, **__: object) -> Any:
        raise AssertionError("something outside was touched")

    with (
        patch.object(socket, "socket", raises),
        patch.object(socket, "socketpair", raises),
        patch.object(subprocess, "Popen", raises),
    ):
        assert cli.ok("rerun", "help.jsonl", "--jobs", "1").out.startswith("help.jsonl: all")


def test_agents_without_that_of_the_log_compare_nothing_and_that_is_a_finding(cli: Cli, folder: Path) -> None:
    (folder / "renamed.py").write_text(AGENTS.format(system="You help.").replace('"support"', '"renamed"'))
    done = cli.run("rerun", "help.jsonl", "--agents", "renamed:AGENTS")
    assert done.code == 1
    said = "support is not among the agents given, so nothing that it declares was compared"
    assert done.out == f"help.jsonl: all 16 events came out again; {said}\n"


def test_declarations_of_a_corpus_are_the_texts_of_then(cli: Cli, folder: Path) -> None:
    then, now = declared(folder, "agents_added", "You help with orders."), declared(folder, "agents_today", "You help.")
    (folder / "corpus").mkdir()
    said = cli.ok(
        "corpus", "add", "help.jsonl", "corpus", "--agents", now, "--note", "Not its agent.", "--name", "a"
    ).err
    assert (
        "what support said is not kept: none of the agents given has the texts and tools that the log records" in said
    )
    cli.ok("corpus", "add", "help.jsonl", "corpus", "--agents", then, "--note", "It helps.")
    done = cli.run("rerun", "corpus", "--agents", now, "--show")
    assert done.code == 1
    assert "    -You help with orders." in done.out.splitlines()
    done = cli.run("rerun", "help.jsonl", "--sections", "corpus/declarations.json")
    assert done.code == 2
    assert "it looks like a file of declarations" in done.err
    (folder / "corpus" / "declarations.json").write_text("{}")
    assert "is no file of declarations" in cli.run("rerun", "corpus", "--agents", now).out


def test_a_tool_that_is_gone_has_no_value_today(cli: Cli, folder: Path) -> None:
    (folder / "without.py").write_text(AGENTS.format(system="You help with orders.").replace("tools=TOOLS", "tools=[]"))
    lines = cli.run("rerun", "help.jsonl", "--agents", "without:AGENTS").out.splitlines()
    assert '      $.added[0].parts[1].crash: "rerun" -> nothing' in lines
    assert "  calls: there is no tool look_up today, which was called then (at version 5)" in lines
