"""`replay --decide`: findings, verdicts and exit codes, over one log and over many, and nothing run for it."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec.structs import replace

from events.envelope import Recorded
from events.records import Decision
from generation.tools import execute
from tests.chatfold.cli.kit import Cli, Terminal
from tests.chatfold.replaying.kit import decided, events_of, helped, redecided, written

EVENTS = events_of(helped())
LAST = decided(EVENTS, "D7")
STOP = decided(EVENTS, "D4")

ANSWERED = "the newest message that counts is a finished answer"
STOPPED = "the turn has a result of a stop-after tool that is no error"
USED = "the turn has 3 steps, and at most 3 are allowed"
GO_ON = "nothing else is to be done: the model answers to the tool message, in attempt 1"


def drifted() -> list[Recorded]:
    """The log with two decisions that today's rules do not take."""

    def other(decision: Decision) -> Decision:
        return replace(decision, rule="D6", action="finish(complete)", facts={"last": "assistant"})

    return redecided(redecided(EVENTS, STOP.version, other), LAST.version, other)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four logs: two in order, one that drifted, one below in a folder of its own."""
    logs = tmp_path / "logs"
    for name in ("a.jsonl", "c.jsonl", "deep/d.jsonl"):
        written(logs / name, EVENTS)
    written(logs / "b.jsonl", drifted())
    return logs


def test_a_log_in_order_is_said_to_be(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", EVENTS)
    done = cli.ok("replay", "--decide", file)
    assert (done.out, done.err) == (f"{file}: 18 decisions taken again, no drift\n", "")
    assert cli.ok("replay", "--decide", file, "--json").lines == [
        {
            "kind": "replayed",
            "log": file,
            "events": 47,
            "decisions": 18,
            "drifts": 0,
            "altered": None,
            "problem": None,
            "unread": [],
        }
    ]
    assert cli.ok("replay", "--decide", "-", stdin=Path(file).read_bytes()).out.startswith("<stdin>: 18 decisions")


def test_the_first_drift_is_told_with_both_rules_and_what_differs(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path / "b.jsonl", drifted())
    done = cli.run("replay", "--decide", file)
    assert done.code == 1
    assert done.out.splitlines() == [
        f"{file}, version {STOP.version}: another rule holds",
        f"  recorded: D6 finish(complete), because {ANSWERED} (docs/decision-rules.md#d6)",
        f"  today: D4 finish(stop_after_tool), because {STOPPED} (docs/decision-rules.md#d4)",
        "  $.decision.facts.last: 'assistant' -> nothing",
        "  $.decision.facts.stop_after_tool: nothing -> true",
        f"{file}: this is the first drift; --all shows all of them",
    ]
    everything = cli.run("replay", "--decide", "--all", file)
    assert everything.code == 1
    assert f"{file}, version {LAST.version}: another rule holds\n" in everything.out
    assert everything.out.endswith(f"{file}: 18 decisions taken again, 2 drifted\n")


def test_drifts_as_json(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path / "b.jsonl", drifted())
    first, second, log = cli.run("replay", "--decide", "--all", file, "--json").lines
    assert [(line["kind"], line["drift"], line["version"]) for line in (first, second)] == [
        ("drift", "rule", STOP.version),
        ("drift", "rule", LAST.version),
    ]
    assert first["meaning"] == "another rule holds"
    assert (first["then"]["rule"], first["now"]["rule"]) == ("D6", "D4")
    assert first["now"]["because"] == STOPPED
    assert {"path": "$.decision.rule", "before": "D6", "after": "D4"} in first["changes"]
    assert {"path": "$.decision.facts.last", "before": "assistant", "after": {"missing": True}} in first["changes"]
    assert (log["kind"], log["decisions"], log["drifts"]) == ("replayed", 18, 2)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder_is_checked_on_any_number_of_cores(cli: Cli, folder: Path, jobs: str) -> None:
    done = cli.run("replay", "--decide", str(folder), "--jobs", jobs)
    assert done.code == 1
    assert [line.partition(",")[0] for line in done.out.splitlines() if ", version" in line] == [
        str(folder / "b.jsonl")
    ]
    assert done.err == "65 decisions of 4 logs taken again; logs that drifted: 1, altered or not to be read: 0\n"
    lines = cli.run("replay", "--decide", str(folder), "--jobs", jobs, "--json").lines
    names = [Path(line["log"]).name for line in lines if line["kind"] == "replayed"]
    assert names == ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl"]


def test_patterns_and_chats_are_named_beside_each_other(chats: Cli, folder: Path) -> None:
    done = chats.ok("replay", "--decide", str(folder / "[ac].jsonl"), "talk", "asks")
    assert done.out == ""
    assert done.err == "42 decisions of 4 logs taken again; logs that drifted: 0, altered or not to be read: 0\n"
    assert chats.ok("replay", "--decide", "talk").out == "talk: 4 decisions taken again, no drift\n"


def test_a_log_that_cannot_be_read_is_a_finding_among_others(cli: Cli, folder: Path) -> None:
    (folder / "a.jsonl").write_text("no log\n")
    whole = (folder / "c.jsonl").read_text()
    (folder / "c.jsonl").write_text(whole.replace("A-1", "B-2", 1))
    done = cli.run("replay", "--decide", str(folder), "--jobs", "1", "--json")
    assert done.code == 1
    logs = [line for line in done.lines if line["kind"] == "replayed"]
    assert logs[0]["log"] == str(folder / "a.jsonl")
    assert logs[0]["problem"].startswith("line 1: ")
    assert logs[2]["altered"].startswith("altered from version 1 on: ")
    assert logs[3] | {"log": ""} == logs[3] | {"log": "", "altered": None, "problem": None, "drifts": 0}
    shown = cli.run("replay", "--decide", str(folder), "--jobs", "1")
    assert f"{folder / 'c.jsonl'}: altered from version 1 on: " in shown.out
    assert shown.err.endswith("logs that drifted: 1, altered or not to be read: 2\n")


def test_with_another_policy(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", EVENTS)
    Path("wider.toml").write_text("max_steps = 10\n")
    done = cli.run("replay", "--decide", file, "--policy", "wider.toml", "--all")
    assert done.code == 1
    assert done.out.splitlines()[:3] == [
        f"{file}, version {LAST.version}: another rule holds",
        f"  recorded: D7 finish(max_steps), because {USED} (docs/decision-rules.md#d7)",
        f"  otherwise: D11 generate, because {GO_ON} (docs/decision-rules.md#d11)",
    ]
    assert done.err == "after its first drift, a log tells what happened, and not what would have happened then\n"
    Path("same.json").write_text(json.dumps({"budget": {"turns": 99}}))
    assert cli.ok("replay", "--decide", file, "--policy", "same.json").out.endswith(
        ": 18 decisions taken again, no drift\n"
    )


def test_a_policy_of_which_no_decision_could_tell_anything_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", EVENTS)
    Path("tools.toml").write_text("max_steps = 10\n[tools.look_up]\nexclusive = true\n[model]\neffort = 'low'\n")
    done = cli.run("replay", "--decide", file, "--policy", "tools.toml")
    assert done.code == 2
    assert "tools.toml: no decision reads tools, model.effort, so " in " ".join(done.err.split())
    # A decide function of one's own may read it.
    Path("calls.json").write_text(json.dumps({"max_model_attempts": 3}))
    by = ("--decider", "generation.decide:decide_generation_action")
    assert cli.ok("replay", "--decide", file, "--policy", "calls.json", *by).out.endswith("no drift\n")


def test_a_field_that_has_no_effect_on_a_log_is_told(cli: Cli, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", EVENTS)  # its model has no context_limit
    Path("p.toml").write_text("max_steps = 100\n[model]\ncompaction_threshold = 40\n")
    assert "no decision" not in cli.run("replay", "--decide", file, "--policy", "p.toml").err, "it ended early"
    done = cli.run("replay", "--decide", "--all", file, "--policy", "p.toml")
    assert done.err.startswith(f"{file}: no decision of this log reads model.compaction_threshold, which the policy ch")
    Path("p.toml").write_text("[model]\ncompaction_threshold = 40\n")
    (line,) = cli.ok("replay", "--decide", file, "--policy", "p.toml", "--json").lines
    assert line["unread"] == ["model.compaction_threshold"]
    Path("p.toml").write_text("[model]\ncompaction_threshold = 40\ncontext_limit = 100_000\n")
    assert cli.run("replay", "--decide", file, "--policy", "p.toml").err == ""


OWN = """
from msgspec.structs import replace
from generation.decide import decide_generation_action

def cautious(state, policy):
    return decide_generation_action(state, replace(policy, max_steps=1))

def last_words(state, policy):
    state.messages[-1].message.parts[0].text.text
    return decide_generation_action(state, policy)

def fails(state, policy):
    raise ValueError("no idea")

def quiet(policy):
    return replace(policy, max_model_attempts=3, system="other")

def less(policy):
    return replace(policy, max_steps=-3)

def wider(policy):
    return replace(policy, max_steps=10)
"""


@pytest.fixture
def own(cli: Cli) -> Iterator[Cli]:
    """The command line beside a module of decide functions."""
    import sys

    Path("own_rules.py").write_text(OWN)
    yield cli
    sys.modules.pop("own_rules", None)
    sys.path[:] = [path for path in sys.path if path != str(cli.file.parent)]


def test_with_a_decide_function_of_ones_own(own: Cli, tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", EVENTS)
    (drift, _) = own.run("replay", "--decide", file, "--decider", "own_rules:cautious", "--json").lines
    assert (drift["version"], drift["then"]["rule"], drift["now"]["rule"]) == (9, "D11", "D7")
    (drift, _) = own.run("replay", "--decide", file, "--policy", "own_rules:wider", "--json").lines
    assert (drift["version"], drift["now"]["rule"]) == (LAST.version, "D11")
    quiet = own.run("replay", "--decide", file, "--policy", "own_rules:quiet")
    assert quiet.code == 1
    assert "own_rules:quiet: no decision reads max_model_attempts, system, so decisions" in quiet.out
    less = own.run("replay", "--decide", file, "--policy", "own_rules:less")
    assert (less.code, "own_rules:less: max_steps must be at least 1, not -3" in less.out) == (1, True)
    failed = own.run("replay", "--decide", file, "--decider", "own_rules:fails")
    assert (failed.code, failed.out.splitlines()[0]) == (
        1,
        f"{file}: version 4: the decide function raised ValueError: no idea",
    )


def test_a_function_that_fails_is_not_the_fault_of_logs(own: Cli, folder: Path) -> None:
    done = own.run("replay", "--decide", str(folder), "--decider", "own_rules:fails", "--jobs", "1")
    assert done.code == 1
    assert done.err.endswith("altered or not to be read: 0, where what was given to decide with failed: 4\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--all"], "--all is about decisions: say --decide too"),
        (["--policy", "x.toml"], "--policy is about decisions: say --decide too"),
        (["--decider", "x:y"], "--decider is about decisions: say --decide too"),
        (["--jobs", "2"], "--jobs is about decisions: say --decide too"),
        (["other.jsonl"], "one log at a time is shown; several are for --decide"),
        (["--decide", "--at", "3"], "--at and --decide are two questions; ask one"),
        (["--decide", "--policy", "x.toml"], "x.toml: No such file or directory"),
        (["--decide", "--decider", "x"], "x: give MODULE:NAME of a function of a state and a policy"),
        (["--decide", "gone.jsonl"], "there is no file gone.jsonl"),
        (["--decide", "-"], "- (stdin) is one log; it cannot be named beside others"),
    ],
)
def test_a_wrong_command_line_is_said(cli: Cli, tmp_path: Path, arguments: list[str], said: str) -> None:
    file = written(tmp_path / "a.jsonl", EVENTS)
    done = cli.run("replay", file, *arguments)
    assert (done.code, said in done.err) == (2, True), done


def test_what_is_not_there_is_a_wrong_command_line(chats: Cli) -> None:
    for source in ("gone.jsonl", "nobody"):
        assert chats.run("replay", "--decide", source).code == 2
    Path("empty").mkdir()
    assert "there are no log files" in chats.run("replay", "--decide", "empty").err


def test_nothing_is_connected_started_or_run(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither command opens a socket, starts a process, makes an event loop or enters a tool."""

    def refuse(*_args: object, **_options: Any) -> NoReturn:
        raise RuntimeError("a socket, a process, an event loop or a tool")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "socketpair", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(asyncio.events, "new_event_loop", refuse)
    monkeypatch.setattr(execute.RunningCall, "__init__", refuse)
    monkeypatch.setattr("tests.chatfold.replaying.kit.look_up", refuse)
    done = cli.run("replay", "--decide", "--all", str(folder), "--jobs", "1")
    assert (done.code, "18 decisions taken again, 2 drifted" in done.out) == (1, True)
    assert cli.ok("why", str(folder / "a.jsonl")).out
    assert cli.ok("why", str(folder / "a.jsonl"), "6", "--json").lines[0]["decision"]["rule"] == "D1"
    with pytest.raises(RuntimeError, match="a socket, a process"):
        subprocess.run(["true"], check=True)


def test_long_work_shows_a_bar_on_a_terminal(folder: Path) -> None:
    terminal = Terminal(folder, ["replay", "--decide", str(folder), "--jobs", "1"])
    terminal.until("taking decisions again")
    terminal.until("logs that drifted: 1")
    assert terminal.end() == 1
