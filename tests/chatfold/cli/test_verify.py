"""`verify` finds what was altered, wherever, and says so by its exit code."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chatfold.logcheck import verify_log
from events.logfile import read_log
from tests.chatfold.cli.kit import Cli


def test_a_sound_chat_and_its_log(chats: Cli) -> None:
    (verified,) = chats.ok("verify", "talk", "--json").lines
    log = chats.ok("export", "talk").out
    digest = json.loads(log.splitlines()[-1])["digest"]
    assert verified == {"kind": "verified", "chat": "talk", "version": 11, "problems": 0, "digest": digest}
    assert chats.ok("verify", "-", stdin=log).out == f"<stdin>: ok, 11 events, {digest[:16]}\n"


def test_all_chats(chats: Cli) -> None:
    done = chats.ok("verify", "--all")
    assert sorted(line.partition(":")[0] for line in done.out.splitlines()) == ["asks", "broken", "talk"]
    assert done.err == "3 chats verified, 0 with problems\n"
    chats.change("UPDATE chats SET owner = 'thief' WHERE chat = 'asks'")
    done = chats.run("verify", "--all", "--json")
    assert done.code == 1
    (problem,) = [line for line in done.lines if line["kind"] == "problem"]
    assert problem == {
        "kind": "problem",
        "chat": "asks",
        "version": None,
        "check": "header",
        "problem": "the header's owner is not what the log folds to: 'thief' instead of ''",
    }
    assert {line["chat"]: line["problems"] for line in done.lines if line["kind"] == "verified"} == {
        "talk": 0,
        "asks": 1,
        "broken": 0,
    }


@pytest.mark.parametrize(
    ("statement", "check", "version", "problem"),
    [
        ("UPDATE chats SET title = 'x' WHERE chat = 'talk'", "header", None, "title"),
        ("UPDATE chats SET status = 'error' WHERE chat = 'talk'", "header", None, "status"),
        ("UPDATE chats SET digest = zeroblob(32) WHERE chat = 'talk'", "header", None, "digest"),
        ("UPDATE chats SET history_version = 1 WHERE chat = 'talk'", "header", None, "history_version"),
        (
            "UPDATE chats SET control = replace(control, '\"turns\":2', '\"turns\":3') WHERE chat = 'talk'",
            "header",
            None,
            "control",
        ),
        ("UPDATE chat_events SET recorded_at = recorded_at + 1 WHERE chat = 'talk' AND version = 4", "digest", 4, ""),
        (
            "UPDATE chat_events SET content = CAST(replace(content, 'First', 'Fifth') AS BLOB) WHERE chat = 'talk'",
            "digest",
            1,
            "its digest does not follow",
        ),
        (
            "UPDATE chat_events SET facts = CAST('{' AS BLOB) WHERE chat = 'talk' AND version = 5",
            "form",
            5,
            "malformed",
        ),
        ("UPDATE chat_events SET type = 'x' WHERE chat = 'talk' AND version = 5", "form", 5, "unknown event type"),
        ("UPDATE chat_events SET source = 'error' WHERE chat = 'talk' AND version = 4", "audit", 4, "the event says"),
        ("DELETE FROM chat_events WHERE chat = 'talk' AND version = 11", "header", None, "the log has 10 events"),
        ("DELETE FROM chat_events WHERE chat = 'talk' AND version = 6", "digest", 6, "says that it is version 7"),
    ],
)
def test_what_was_altered_is_found(chats: Cli, statement: str, check: str, version: int | None, problem: str) -> None:
    chats.change(statement)
    done = chats.run("verify", "talk", "--json")
    assert done.code == 1
    found = [line for line in done.lines if line["kind"] == "problem"]
    assert any((each["check"], each["version"]) == (check, version) and problem in each["problem"] for each in found), (
        found
    )
    shown = chats.run("verify", "talk")
    assert shown.code == 1
    where = "header" if version is None else f"version {version}"
    assert f"talk, {where}: " in shown.out
    assert f"({check})\n" in shown.out


def test_events_behind_the_header_are_found(chats: Cli) -> None:
    chats.change("UPDATE chats SET version = 10 WHERE chat = 'talk'")
    done = chats.run("verify", "talk")
    assert done.code == 1
    assert "events follow version 10, which the header says is the last" in done.out


def test_a_missing_large_content_is_found(cli: Cli) -> None:
    cli.ok("chat", "-", "--chat", "large", stdin="x" * 40_000)
    cli.ok("verify", "large")
    cli.change("DELETE FROM blobs")
    done = cli.run("verify", "large", "--json")
    assert done.code == 1
    assert {(line["check"], line["version"]) for line in done.lines if line["kind"] == "problem"} >= {("blob", 1)}


@pytest.mark.parametrize(
    ("changed", "version", "check"),
    [
        (lambda log: log.replace("First", "Fifth", 1), 1, "digest"),
        (lambda log: log.replace('"source":"pending"', '"source":"waiting"', 1), 2, "audit"),
    ],
)
def test_an_altered_file(chats: Cli, changed: Callable[[str], str], version: int, check: str) -> None:
    log = chats.ok("export", "talk").out
    altered = changed(log)
    assert altered != log
    done = chats.run("verify", "-", "--json", stdin=altered)
    assert done.code == 1
    assert (version, check) in {(line.get("version"), line.get("check")) for line in done.lines}


def test_a_file_that_is_cut_off(chats: Cli) -> None:
    log = chats.ok("export", "talk").out
    done = chats.run("verify", "-", "--json", stdin=log[:-200])
    assert done.code == 1
    (problem,) = done.lines
    assert problem["check"] == "form"
    assert "the line is cut off" in problem["problem"]
    assert "the line is cut off" in done.err


def test_a_log_that_does_not_fold_is_a_finding(chats: Cli) -> None:
    lines = chats.ok("export", "talk").out.splitlines()
    header = json.loads(lines[0])
    without_begin = [json.loads(line) for line in lines[2:]]
    header |= {"events": len(without_begin), "head": without_begin[-1]["digest"]}
    log = read_log([json.dumps(header), *map(json.dumps, without_begin)], "cut")
    verdict = verify_log("cut", log.events, log.blobs)
    assert {finding.check for finding in verdict.findings} >= {"digest", "audit"}


@pytest.mark.parametrize("arguments", [[], ["talk", "--all"]])
def test_one_thing_is_verified(chats: Cli, arguments: list[str]) -> None:
    done = chats.run("verify", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "name log files or chats, or say --all" in done.err


def test_many_logs_are_verified_each_in_a_line(chats: Cli) -> None:
    Path("logs").mkdir()
    for chat in ("talk", "asks", "broken"):
        chats.ok("export", chat, "-o", f"logs/{chat}.jsonl")
    assert chats.ok("verify", "logs", "talk").err == "4 logs verified, 0 with problems\n"
    whole = Path("logs/talk.jsonl").read_text()
    Path("logs/talk.jsonl").write_text(whole.replace("First", "Fifth", 1))
    Path("logs/broken.jsonl").write_text(whole[:-200])
    done = chats.run("verify", "logs/*.jsonl", "nobody")
    assert done.code == 1
    assert [line.partition(",")[0] for line in done.out.splitlines()] == [
        "logs/asks.jsonl: ok",
        "logs/broken.jsonl: line 12: the line is cut off",
        "logs/talk.jsonl",  # where and what
        "logs/talk.jsonl: 1 problem",
        "nobody: there is no chat nobody",
    ]
    assert done.err == "4 logs verified, 3 with problems\n"
    said = chats.run("verify", "logs", "nobody", "--json").lines
    assert [(line["kind"], line["chat"]) for line in said if line["kind"] == "problem"] == [
        ("problem", f"{name}") for name in ("logs/broken.jsonl", "logs/talk.jsonl", "nobody")
    ]
    assert chats.run("verify", "logs", "nowhere.jsonl").code == 2
