"""The prepared incidents, by the command line alone: `doctor` names the cause at once, `why` and `diff` lead on.

Each is a log that the real engine wrote (`scenes`), as a person gets it who has to find out; what that person sees
stands in a text file beside it.
"""

from pathlib import Path

import pytest

from tests.chatfold.cli.kit import Cli
from tests.incidents.answers import COMMANDS, transcript
from tests.incidents.make import FOLDER, SCENES
from tests.meta.pages import read
from tests.meta.source import ROOT

CAUSES = {
    "lost_result": "The result of charge_card (5.0.1) was lost: the worker that ran the chat died",
    "compaction_loop": "The conversation was compacted 3 times in one turn, 2 of them after no more than 3 answers",
    "stop_after_wrong": "The turn was ended since look_up (5.0.1) stops it (stop_after)",
    "silent_client": "The client never answered: at version 6 it was asked for the result of pick_seat",
    "retry_storm": "8 model calls of the turn failed (8 times rate_limit, status 429), from version 5 on",
}
"""How the first line begins."""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(FOLDER)
    return Cli(tmp_path / "none.db")


@pytest.mark.usefixtures("cli")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_person_sees_the_cause(name: str) -> None:
    assert transcript(name) == (FOLDER / f"{name}.txt").read_text("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_line_names_it(cli: Cli, name: str) -> None:
    cause, mend, more, *_ = cli.run("doctor", f"{name}.jsonl").out.splitlines()
    assert cause.startswith(f"cause       {CAUSES[name]}")
    assert mend.startswith("mend        ")
    assert more.startswith("more        chatfold why ")
    cli.ok(*more.split()[2:])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_check_can_tell_each_from_a_chat_in_which_all_went_well(cli: Cli, name: str) -> None:
    assert cli.run("doctor", f"{name}.jsonl", "--strict").code == 1
    fault = name != "stop_after_wrong"
    assert cli.run("doctor", f"{name}.jsonl").code == int(fault), "a tool that was declared so is no fault"
    cli.ok("doctor", "stop_after_good.jsonl", "--strict")


def test_diff_shows_where_the_tool_that_stops_parts_from_the_one_that_does_not(cli: Cli) -> None:
    done = cli.run("diff", "stop_after_good.jsonl", "stop_after_wrong.jsonl")
    assert done.code == 1
    assert "     9  R0 start_attempt R0, D11 generate" in done.out
    assert "     9  R0 finish_turn W, D4 finish(stop_after_tool): stop_after_tool" in done.out


def test_nothing_is_said_of_a_chat_in_which_all_went_well(cli: Cli) -> None:
    done = cli.ok("doctor", "stop_after_good.jsonl")
    assert done.out.splitlines()[0] == "cause       Nothing went wrong in its newest turn, as far as its log tells."


@pytest.mark.parametrize("name", [scene.__name__ for scene in SCENES])
def test_each_is_a_log_of_today(cli: Cli, name: str) -> None:
    for command in (["replay", "--decide"], ["rerun"], ["verify"]):
        cli.ok(*command, f"{name}.jsonl")


def test_the_page_shows_what_a_person_sees(cli: Cli) -> None:
    one, several = [block.text for block in read(ROOT / "docs" / "incidents.md").blocks if block.text.startswith("$ ")]
    assert (FOLDER / "silent_client.txt").read_text("utf-8").startswith(one)
    command, _, told = several.partition("\n")
    done = cli.run(*command.removeprefix("$ chatfold ").split(), "--jobs", "1")
    assert done.out + done.err == told + "\n" * (not told.endswith("\n"))
