"""`doctor` says why a chat does not move, in one screen."""

from pathlib import Path

import pytest

from tests.chatfold.cli.kit import Cli
from tests.chatfold.replaying.kit import decided, events_of, helped, written
from tests.meta.source import ROOT


def test_a_chat_that_asks_its_client(chats: Cli) -> None:
    done = chats.ok("doctor", "asks")
    assert "state       requires_action A0" in done.out
    assert "deadline    action " in done.out
    assert "(client, not started)" in done.out
    assert "next        The client answers (result of call " in done.out
    assert "to do       Submit results for action " in done.out
    assert len(done.out.splitlines()) <= 24


def test_a_chat_that_failed(chats: Cli) -> None:
    done = chats.run("doctor", "broken")
    assert done.code == 1
    assert done.out.startswith("cause       The turn failed (config): The script has 0 turns")
    assert "more        chatfold why broken 5" in done.out
    assert "error       " in done.out
    assert "to do       Resume it, or send a message." in done.out


def test_a_chat_of_a_store_has_the_text_of_its_error_as_its_log_has(chats: Cli) -> None:
    chats.ok("export", "broken", "-o", "broken.jsonl")
    (of_store,) = [line for line in chats.run("doctor", "broken").out.splitlines() if line.startswith("error")]
    (of_file,) = [line for line in chats.run("doctor", "broken.jsonl").out.splitlines() if line.startswith("error")]
    assert of_store == of_file == "error       config: The script has 0 turns, and none is left for this call."


def test_a_chat_whose_log_cannot_be_read_is_diagnosed_by_its_header(chats: Cli) -> None:
    chats.change("UPDATE chat_events SET facts = x'00' WHERE chat = 'broken' AND version = 3")
    done = chats.run("doctor", "broken")
    assert "what happened cannot be told: " in done.err
    assert "chatfold verify broken" in done.err
    assert "state       error E0, version 5" in done.out
    assert (done.code, done.out.startswith("cause       Not known: this log cannot be read: ")) == (1, True)


def test_a_chat_that_nobody_runs_is_the_operators_matter(chats: Cli) -> None:
    chats.change("UPDATE chats SET is_foreign = 1 WHERE chat = 'talk'")
    done = chats.run("doctor", "talk")
    assert done.code == 1
    assert "chatfold adopt talk" in done.out


def test_as_json(chats: Cli) -> None:
    (line,) = chats.ok("doctor", "asks", "--json").lines
    assert (line["kind"], line["acts"], line["state"], line["moving"]) == ("diagnosis", "client", "A0", False)
    assert line["at"] == line["control"]["action"]["deadline"]
    assert line["workers"] == []


def test_a_chat_that_is_not_there(chats: Cli) -> None:
    done = chats.run("doctor", "none")
    assert (done.code, "none" in done.err) == (2, True)


@pytest.mark.parametrize("command", ["doctor", "repair", "verify"])
def test_long_help_teaches(chats: Cli, command: str) -> None:
    assert f"chatfold {command}" in chats.ok(command, "--help").out


INCIDENTS = ROOT / "tests" / "incidents"


def altered(log: str) -> str:
    changed = log.replace('"Second"', '"Fourth"', 1)
    assert changed != log
    return changed


def test_of_a_folder_each_log_gets_a_line_and_each_kind_a_count(cli: Cli) -> None:
    done = cli.run("doctor", str(INCIDENTS), "--jobs", "1")
    told = dict(line.removeprefix(f"{INCIDENTS}/").split(": ", 1) for line in done.out.splitlines())
    assert done.code == 1
    assert told["lost_result.jsonl"].startswith("lost_result at version 7: The result of charge_card")
    assert told["compaction_loop.jsonl"].startswith("compaction_loop at version 38: "), "the worst is a fault"
    assert told["stop_after_good.jsonl"] == "nothing went wrong"
    assert done.err.startswith("6 logs looked at; with a fault: 4, not whole or not to be read: 0; logs by what ")
    assert "lost_result 1" in done.err


def test_a_log_alone_and_among_others_is_told_by_the_same_first(cli: Cli) -> None:
    logs = sorted(str(log) for log in INCIDENTS.glob("*.jsonl"))
    among = {line["log"]: line["what"] for line in cli.run("doctor", *logs, "--json", "--jobs", "1").lines}
    alone = {log: [each["what"] for each in cli.run("doctor", log, "--json").lines[0]["incidents"]] for log in logs}
    assert among == {log: next(iter(told), None) for log, told in alone.items()}


def test_several_logs_without_a_fault_are_fine_but_for_strict(cli: Cli) -> None:
    logs = [str(INCIDENTS / f"{name}.jsonl") for name in ("stop_after_good", "stop_after_wrong")]
    assert "stopped_by_tool at version 9" in cli.ok("doctor", *logs).out
    assert cli.run("doctor", *logs, "--strict").code == 1


def test_all_chats_of_a_store(chats: Cli) -> None:
    done = chats.run("doctor", "--all", "--json", "--jobs", "1")
    assert done.code == 1
    assert [(line["kind"], line["log"], line["fault"], line["worst"]) for line in done.lines] == [
        ("examined", "asks", False, "open_question"),
        ("examined", "broken", True, "failed_turn"),
        ("examined", "talk", False, None),
    ]
    assert chats.run("doctor").code == chats.run("doctor", "talk", "--all").code == 2
    assert chats.run("doctor", "talk", "gone.jsonl").code == 2


def test_a_log_among_others_that_is_not_whole_or_none_is_said_to_be(chats: Cli) -> None:
    Path("a.jsonl").write_text("no log\n")
    Path("b.jsonl").write_text(altered(chats.ok("export", "talk").out))
    done = chats.run("doctor", "a.jsonl", "b.jsonl", "talk", "--jobs", "1")
    assert done.code == 1
    first, second, third = done.out.splitlines()
    assert first.startswith("a.jsonl: line 1: ")
    assert second.startswith("b.jsonl: was altered, from version 7 on: ")
    assert third == "talk: nothing went wrong"
    assert "with a fault: 0, not whole or not to be read: 2" in done.err


def test_an_altered_log_is_not_told_as_fine(chats: Cli) -> None:
    log = altered(chats.ok("export", "talk").out)
    done = chats.run("doctor", "-", stdin=log)
    assert done.code == 1
    assert done.out.startswith("cause       Not known: this log was altered, from version 7 on: ")
    assert "Nothing went wrong" not in done.out
    assert chats.run("doctor", "-", "--json", stdin=log).lines[0]["problem"].startswith("was altered, from version 7")
    chats.change("UPDATE chat_events SET recorded_at = recorded_at + 1 WHERE chat = 'talk' AND version = 4")
    stored = chats.run("doctor", "talk")
    assert (stored.code, "talk was altered, from version 4 on" in stored.err) == (1, True)
    assert stored.out.startswith("cause       Not known: this log was altered, from version 4 on: ")


def test_whether_the_holder_of_a_file_lives_is_not_told(cli: Cli, tmp_path: Path) -> None:
    events = events_of(helped())
    running = [each for each in events if each.version <= decided(events, "D11").version]
    done = cli.ok("doctor", written(tmp_path / "a.jsonl", running))
    (holder,) = [line for line in done.out.splitlines() if line.startswith("holder")]
    assert holder.endswith("whether its lease lives no log tells")
