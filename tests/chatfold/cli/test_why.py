"""`why`: a decision in words, where any other event came from, and how a chat came to where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from chatfold.cli import why
from tests.chatfold.cli.kit import Cli
from tests.chatfold.replaying.kit import decided, events_of, helped, written
from tests.meta.source import ROOT

EVENTS = events_of(helped())


HUNG_UP = (
    "The turn was ended since hang_up (25.0.0) stops it (stop_after): the model was not asked again after the result, "
    "so there is no answer to it."
)


@pytest.fixture
def file(cli: Cli) -> str:
    """A log file."""
    return written(Path("help-1.jsonl"), EVENTS)


def test_a_decision_is_told_with_what_was_passed_by(cli: Cli, file: str) -> None:
    version = decided(EVENTS, "D4").version
    assert cli.ok("why", file, str(version)).out.splitlines() == [
        f"version {version}, turn_finished",
        f"  happened   {HUNG_UP}",
        "  decided    D4 finish(stop_after_tool)",
        "  because    the turn has a result of a stop-after tool that is no error",
        "  read       stop_after_tool true",
        "  passed by  D0  the policy has a model, and max steps is 1 or more",
        "             D1  no open call may run here",
        "             D2  the client owes nothing",
        "             D2b no budget question was answered with the end of the turn",
        "             D3  no compaction that was asked for is to be done",
        "  rule       D4: the turn holds a non-error result of a stop-after tool; docs/decision-rules.md#d4",
    ]


def test_another_event_is_told_by_the_decision_behind_it(cli: Cli, file: str) -> None:
    assert cli.ok("why", file, "7").out.splitlines() == [
        "version 7, tool_result_recorded",
        "  because    it is what came of attempt 1, which version 6 began: the result of look_up (5.0.1)",
        "  decided    at version 6: D1 run_tools",
        "             because 1 local call may run",
        "             docs/decision-rules.md#d1",
    ]
    assert cli.ok("why", file, "1").out.splitlines() == [
        "version 1, chat_created",
        "  because    the user ada began the chat with agent support and sent a message",
        "  decided    nothing was decided here",
    ]


def test_without_a_version_the_newest_turn_is_told(cli: Cli, file: str) -> None:
    out = cli.ok("why", file).out.splitlines()
    assert out[0] == "  30  message_sent               the user sent a message"
    assert out[17] == (
        "  47  turn_finished              D7 finish(max_steps): the turn has 3 steps, and at most 3 are allowed"
    )
    assert out[18:22] == ["help-1.jsonl is waiting (W) after version 47.", "", "version 47, turn_finished", *out[21:22]]
    assert out[21].startswith("  happened   The turn was ended after 3 steps, ")
    assert out[22] == "  decided    D7 finish(max_steps)"
    whole = cli.ok("why", file, "--all").out.splitlines()
    assert whole[29:] == out
    assert whole[0].startswith("   1  chat_created ")


def test_of_a_long_turn_the_newest_events_are_told(cli: Cli, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(why, "MOST", 5)
    done = cli.ok("why", file)
    assert done.out.splitlines()[0].startswith("  43  step_committed ")
    assert done.err == "13 events of this turn before these; --all shows every event\n"
    assert cli.ok("why", file, "--all").err == ""


def test_why_as_json(cli: Cli, file: str) -> None:
    (line,) = cli.ok("why", file, "47", "--json").lines
    decision = line.pop("decision")
    assert line == {
        "kind": "why",
        "log": file,
        "version": 47,
        "event": "turn_finished",
        "because": "the turn has 3 steps, and at most 3 are allowed",
        "happened": [
            "The turn was ended after 3 steps, which is all that max_steps allows. The model called look_up 3 times."
        ],
        "decided_at": 47,
    }
    assert decision["read"] == {"last": "tool", "steps": 3, "max_steps": 3}
    assert decision["passed"][0] == {
        "rule": "D0",
        "action": "fail",
        "because": "the policy has a model, and max steps is 1 or more",
    }
    assert decision["page"] == "docs/decision-rules.md#d7"
    assert [line["version"] for line in cli.ok("why", file, "--json").lines] == list(range(30, 48))
    assert [line["version"] for line in cli.ok("why", file, "--all", "--json").lines] == list(range(1, 48))


def test_more_leads_to_at_least_what_doctor_says(cli: Cli) -> None:
    for log in (ROOT / "tests" / "incidents").glob("*.jsonl"):
        (told,) = cli.run("doctor", str(log), "--json").lines
        for each in told["incidents"]:
            assert each["what"] in cli.ok("why", str(log), str(each["version"])).out


def test_a_chat_of_a_store_is_told(chats: Cli) -> None:
    asks = chats.ok("why", "asks").out
    assert "D2 require_action: the client owes 1 call: the result of " in asks
    assert "asks is requires_action (A0) after version " in asks
    broken = chats.ok("why", "broken").out
    assert "broken is error (E0) after version " in broken
    assert "turn_failed " in broken


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["48"], "help-1.jsonl has no version 48; its last is 47"),
        (["3", "--all"], "name a version or say --all, not both"),
        (["0"], "greater than or equal to 1"),
    ],
)
def test_a_wrong_command_line_is_said(cli: Cli, file: str, arguments: list[str], said: str) -> None:
    done = cli.run("why", file, *arguments)
    assert (done.code, said in done.err) == (2, True), done


def test_an_altered_log_is_told_under_a_warning(cli: Cli, file: str) -> None:
    Path(file).write_text(Path(file).read_text().replace("A-1", "B-2", 1))
    done = cli.run("why", file, "47")
    assert (done.code, "was altered, from version 1 on" in done.err, "D7" in done.out) == (1, True, True)
