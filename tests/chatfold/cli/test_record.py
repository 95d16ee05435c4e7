"""`record` writes logs that may be kept, says what is left in clear, and refuses what it cannot make sound."""

import json
from pathlib import Path
from typing import Any

import pytest

from chatfold.cli.guard import UsageProblem
from chatfold.cli.record import since_when
from chatfold.replaying.logs import LogSource
from tests.chatfold.cli.kit import Cli

KEY = "a key that nobody would guess"
NOON = 1_795_867_200


def recorded(cli: Cli, *arguments: str) -> dict[str, Any]:
    """Record with a key, and return what is said of the one log."""
    Path("key").write_text(f"{KEY}\n")
    (line,) = cli.ok("record", *arguments, "--key", "key", "-o", "out", "--json").lines
    return dict(line)


def test_a_chat_is_recorded_without_what_was_said(chats: Cli) -> None:
    line = recorded(chats, "talk")
    file = Path(line["file"])
    assert file == Path("out") / f"{line['chat']}.jsonl"
    assert {name: line[name] for name in ("kind", "source", "version", "decisions", "contents", "failed")} == {
        "kind": "recorded",
        "source": "talk",
        "version": 11,
        "decisions": 4,
        "contents": 5,
        "failed": None,
    }
    assert {"kind": "agents", "text": "assistant", "version": 1} in line["clear"]
    raw = file.read_text()
    assert not [said for said in ("A talk", "First", "One.", "Second", "Two.", '"talk"') if said in raw]
    assert "redacted" in json.loads(raw.splitlines()[0])
    assert LogSource("file", str(file)).read().redacted
    assert chats.ok("verify", str(file)).out.startswith(f"{file}: ok, 11 events")
    then, now = (chats.ok("replay", source, "--json").lines for source in ("talk", str(file)))
    assert [(each["event"], each["rule"]) for each in then] == [(each["event"], each["rule"]) for each in now]


def test_a_recorded_log_comes_out_again_from_a_corpus_too(chats: Cli) -> None:
    file = recorded(chats, "talk")["file"]
    (line,) = chats.ok("rerun", file, "--json").lines
    assert any("redacted" in said for said in line["not_compared"])
    Path("corpus").mkdir()
    chats.ok("corpus", "add", file, "corpus", "--note", "talks")
    added = Path("corpus") / Path(file).name
    chats.ok("corpus", "check", "corpus")
    assert LogSource("file", str(added)).read().mark == LogSource("file", file).read().mark
    chats.ok("rerun", str(added))


def test_who_imports_a_redacted_log_is_told_that_the_store_does_not_say_so(chats: Cli) -> None:
    file = recorded(chats, "talk")["file"]
    assert "it was redacted, and a store does not say so" in chats.ok("import", file, "--as", "made up").err
    chats.ok("export", "talk", "-o", "plain.jsonl")
    assert "redacted" not in chats.ok("import", "plain.jsonl", "--as", "plain").err


def test_the_same_key_gives_the_same_file_and_another_log_is_not_replaced(chats: Cli) -> None:
    file = Path(recorded(chats, "talk")["file"])
    before = file.read_bytes()
    assert Path(recorded(chats, "talk")["file"]).read_bytes() == before
    file.write_bytes(before + b"\n")
    done = chats.run("record", "talk", "--key", "key", "-o", "out")
    assert done.code == 1
    assert done.out.startswith(f"talk: {file} is there already, and is another log")
    assert file.read_bytes() == before + b"\n"


def test_what_is_left_in_clear_is_told(chats: Cli) -> None:
    done = chats.ok("record", "talk", "asks", "-o", "out", "--jobs", "1")
    assert "left in clear:" in done.out
    assert "  agents: asking, assistant\n" in done.out
    assert "  tools: where_am_i\n" in done.out
    assert "2 of 2 logs recorded" in done.err
    assert "no --key" in done.err


def test_rules_say_what_stays(chats: Cli) -> None:
    Path("rules.toml").write_text('never = ["assistant"]\n[names]\nagents = "keep"\nchats = "keep"\n')
    done = chats.run("record", "talk", "--redact", "rules.toml", "-o", "out")
    refused = (
        "talk: its redacted form is not sound: text 1 of the rules' never is in a name (agents), first at version 1"
    )
    helps = 'another name for it under [rename.agents], or agents = "map" under [names], helps'
    assert (done.code, done.out) == (1, f"{refused}: {helps}\n")
    assert list(Path("out").iterdir()) == []
    Path("rules.toml").write_text('[names]\nchats = "keep"\n[rename.agents]\nassistant = "helper"\n')
    chats.ok("record", "talk", "--redact", "rules.toml", "-o", "out")
    assert b'"agent":"helper"' in Path("out/talk.jsonl").read_bytes()


def test_a_rename_that_no_log_has_is_told_after_all_logs(chats: Cli) -> None:
    renames = '[rename.agents]\nasistant = "helper"\nasking = "a"\n[rename.users]\nqqq = "x"\n'
    Path("rules.toml").write_text(renames)
    missing = ["rename.agents.asistant: no log has it; did you mean assistant?", "rename.users.qqq: no log has it"]
    done = chats.ok("record", "--all", "--redact", "rules.toml", "-o", "out")
    assert done.err.endswith("\n".join([*missing, ""]))
    *_, one, other = chats.ok("record", "--all", "--redact", "rules.toml", "-o", "other", "--json").lines
    assert [one, other] == [
        {"kind": "unused_rename", "rule": said.partition(":")[0], "problem": said.partition(": ")[2]}
        for said in missing
    ]
    Path("rules.toml").write_text('[rename.agents]\nasking = "a"\n')
    assert "no log has it" not in chats.ok("record", "asks", "--redact", "rules.toml", "-o", "third").err


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--all"], {"asks", "broken", "talk"}),
        (["--errors"], {"broken"}),
        (["--covers", "require_action"], {"asks"}),
        (["--covers", "require_action", "--covers", "fail_turn"], {"asks", "broken"}),
        (["--covers", "require_action", "--errors"], set()),
        (["--drift"], set()),
        (["--since", "1d"], {"asks", "broken", "talk"}),
        (["--since", "2999-01-01"], set()),
    ],
)
def test_filters_pick_among_all_chats(chats: Cli, filters: list[str], found: set[str]) -> None:
    lines = chats.ok("record", *filters, "-o", "out", "--json", "--jobs", "1").lines
    assert {line["source"] for line in lines} == found
    assert len(list(Path("out").iterdir())) == len(found)


def test_files_are_recorded_as_chats_are_and_an_altered_one_is_not(chats: Cli) -> None:
    Path("logs").mkdir()
    for chat in ("talk", "asks"):
        Path("logs", f"{chat}.jsonl").write_text(chats.ok("export", chat).out)
    of_chat = recorded(chats, "talk")
    Path("logs/talk.jsonl").write_text(Path("logs/talk.jsonl").read_text().replace("First", "Thirs"))
    done = chats.run("record", "logs", "--key", "key", "-o", "out", "--json")
    assert done.code == 1
    asks, talk = done.lines
    assert asks["failed"] is None
    assert talk["failed"].startswith("it was altered, from version 1 on")
    Path("logs/talk.jsonl").write_text(chats.ok("export", "talk").out)
    assert recorded(chats, "logs/talk.jsonl")["chat"] == of_chat["chat"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name chats or log files, or say --all"),
        (["talk", "--all"], "only one of them"),
        (["--covers", "finish"], "--covers finish: there is no such transition; there are create, send,"),
        (["--since", "yesterday"], "--since yesterday: must be a date or time"),
        (["talk", "--redact", "none.toml"], "none.toml: No such file"),
        (["talk", "--redact", "bad.toml"], "bad.toml: names.people: there are tools"),
        (["talk", "--key", "none.key"], "none.key: No such file"),
        (["talk", "--key", "short.key"], "short.key: a key has at least 16 bytes, this one has 5; `openssl rand"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(chats: Cli, arguments: list[str], says: str) -> None:
    Path("bad.toml").write_text("names.people = 'map'\n")
    Path("short.key").write_text("short\n")
    done = chats.run("record", *arguments, "-o", "out")
    assert done.code == 2
    assert says in done.err
    assert done.out == ""


def test_a_chat_that_is_not_there_is_told_with_the_others(chats: Cli) -> None:
    done = chats.run("record", "talk", "nobody", "-o", "out", "--json", "--jobs", "1")
    assert done.code == 1
    assert [line["failed"] is None for line in done.lines] == [True, False]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", NOON - 1800),
        ("12h", NOON - 43_200),
        ("7d", NOON - 7 * 86_400),
        ("2026-11-28", NOON - 43_200),
        ("2026-11-28T12:00", NOON),
        ("2026-11-28T12:00+01:00", NOON - 3600),
    ],
)
def test_since_when(text: str, seconds: int) -> None:
    assert since_when(text, NOON) == seconds * 1_000_000


@pytest.mark.parametrize("text", ["", "d", "0d", "7 days", "-1d", "2026-13-01"])
def test_since_never(text: str) -> None:
    with pytest.raises(UsageProblem):
        since_when(text, NOON)
