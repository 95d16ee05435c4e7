"""`doctor` says why a chat does not move, in one screen."""

import pytest

from tests.chatfold.cli.kit import Cli


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
