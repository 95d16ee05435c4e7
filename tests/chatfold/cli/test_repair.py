"""`repair` makes headers and segments anew from logs, and refuses logs that were altered."""

import pytest

from tests.chatfold.cli.kit import Cli, Terminal


def test_nothing_is_done_where_all_is_well(chats: Cli) -> None:
    done = chats.ok("repair", "--all")
    assert sorted(done.out.splitlines()) == [f"{name}: nothing to repair" for name in ("asks", "broken", "talk")]
    assert done.err == "3 chats looked at, 0 with problems that stay\n"


@pytest.mark.parametrize(
    ("statement", "column"),
    [
        ("UPDATE chats SET owner = 'thief' WHERE chat = 'talk'", "owner"),
        ("UPDATE chats SET status = 'error' WHERE chat = 'talk'", "status"),
        ("UPDATE chats SET control = x'7b7d' WHERE chat = 'talk'", "control"),
        ("UPDATE chats SET digest = zeroblob(32) WHERE chat = 'talk'", "digest"),
    ],
)
def test_a_header_is_made_anew(chats: Cli, statement: str, column: str) -> None:
    chats.change(statement)
    assert chats.run("verify", "talk").code == 1
    (line,) = chats.ok("repair", "talk", "--json").lines
    assert (line["kind"], column in line["header"], line["refused"]) == ("repaired", True, None)
    chats.ok("verify", "talk")


def test_a_header_that_is_gone_is_made_anew(chats: Cli) -> None:
    chats.change("UPDATE chats SET version = 'x', labels = 7 WHERE chat = 'talk'")
    assert "header rewritten" in chats.ok("repair", "talk").out
    chats.ok("verify", "talk")


def test_an_altered_log_is_refused_by_its_version(chats: Cli) -> None:
    chats.change("UPDATE chat_events SET recorded_at = recorded_at + 1 WHERE chat = 'talk' AND version = 4")
    done = chats.run("repair", "talk")
    assert done.code == 1
    assert done.out.startswith("talk: not repaired: chat 'talk', version 4:")
    done = chats.run("repair", "--all", "--json")
    assert {line["chat"]: line["refused"] is None for line in done.lines} == {
        "asks": True,
        "broken": True,
        "talk": False,
    }


@pytest.mark.parametrize("arguments", [(), ("talk", "--all")])
def test_what_to_repair_must_be_said(chats: Cli, arguments: tuple[str, ...]) -> None:
    done = chats.run("repair", *arguments)
    assert (done.code, "--all" in done.err) == (2, True)


def test_a_chat_that_is_not_there(chats: Cli) -> None:
    assert chats.run("repair", "none").code == 2


def test_a_terminal_sees_how_far_it_is(chats: Cli) -> None:
    terminal = Terminal(chats.file.parent, ("verify", "--all"), CHATFOLD_DB=chats.url)
    terminal.until("verifying chats")
    terminal.until("3 chats verified, 0 with problems")
    assert terminal.end() == 0
