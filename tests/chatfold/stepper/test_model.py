"""The walk through a log, without a terminal: moves, jumps, marks, breakpoints, and what the panes say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from chatfold.replaying.conditions import ConditionError, parse_condition
from chatfold.replaying.logs import LogSource, SourceNotFound
from chatfold.stepper import views
from chatfold.stepper.as_test import as_test
from chatfold.stepper.jumps import JUMPS, Direction, find, to_text, to_trigger
from chatfold.stepper.longlog import EventLines, LongLog, open_long
from chatfold.stepper.model import Stepper
from chatfold.stepper.prompt_view import prompt
from events.checkpoints import EVERY
from events.codec import decode_each
from events.errors import InvalidValue, LogFileError
from events.logfile import parse_event_line, read_log
from events.replay import state_at
from events.vocabulary import results_of
from generation.agents import Agent
from generation.tools.contract import Tool
from tests.chatfold.cli.kit import Cli
from tests.chatfold.stepper.kit import look_up, opened, written
from tests.meta.source import ROOT


def hidden(order: str) -> str:
    """Not active."""
    return order


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def log(file: Path) -> LongLog:
    return opened(file)


def test_a_file_is_what_reading_all_of_it_gives(file: Path, log: LongLog) -> None:
    whole = read_log(file.read_bytes().splitlines(), "whole")
    assert tuple(log.events) == whole.events
    assert log.events[3:5] == list(whole.events[3:5])
    assert (log.chat, log.fault()) == ("help-1", None)
    with pytest.raises(IndexError):
        log.events[len(whole.events)]


def test_a_log_that_is_none_is_refused(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    lines = data.splitlines(keepends=True)
    for cut in (b"", b"\n", b"{}\n", b"".join(lines[:-1])):
        with pytest.raises(LogFileError):
            EventLines(cut, "cut")
    with pytest.raises(SourceNotFound):
        open_long(LogSource("file", str(tmp_path / "none.jsonl")))


def test_a_log_that_was_altered_says_so(file: Path, tmp_path: Path) -> None:
    altered = tmp_path / "altered.jsonl"
    altered.write_bytes(file.read_bytes().replace(b"Found 1.", b"Found 9."))
    assert "20" in str(opened(altered).fault())


def test_a_log_is_opened_without_reading_its_events_and_a_jump_reads_few(tmp_path: Path) -> None:
    long = opened(written(tmp_path, turns=150))
    with mock.patch("chatfold.stepper.longlog.parse_event_line", wraps=parse_event_line) as parsed:
        stepper = Stepper(long)
        assert (parsed.call_count, stepper.ready) == (0, False)
        views.row(stepper.points.recorded(stepper.last), 80)
        assert parsed.call_count == 1
        stepper.points.catch_up()
        for version in (stepper.last, 1300, 512, 511, 1, 0):
            parsed.reset_mock()
            stepper.go(version)
            assert stepper.ready
            assert stepper.state.control.version == version
            assert parsed.call_count <= EVERY


@pytest.mark.parametrize(
    ("name", "start", "direction", "found"),
    [
        ("decision", 0, 1, 4),
        ("decision", 4, 1, 6),
        ("decision", 24, 1, None),
        ("decision", 24, -1, 21),
        ("decision", 4, -1, None),
        ("error", 0, 1, 25),
        ("error", 25, -1, None),
        ("tool", 0, 1, 5),
        ("tool", 5, 1, 6),
        ("tool", 25, -1, 18),
    ],
)
def test_jumps(log: LongLog, name: str, start: int, direction: Direction, found: int | None) -> None:
    assert find(Stepper(log).points, JUMPS[name], start, direction) == found


def test_a_failed_call_of_a_tool_is_an_error_to_jump_to() -> None:
    points = Stepper(opened(ROOT / "tests" / "corpus" / "v0.2" / "tools.jsonl")).points
    recorded = [points.recorded(version) for version in range(1, len(points) + 1)]
    failed = [each.version for each in recorded if any(part.failed for part in results_of(each.event))]
    found, version = [], 0
    while (at := find(points, JUMPS["error"], version)) is not None:
        found.append(version := at)
    assert failed
    assert set(failed) <= set(found)


@pytest.mark.parametrize(("version", "path"), [(7, "$.results["), (8, "$.messages["), (21, "$.status")])
def test_the_pane_says_what_changed_as_diff_does(file: Path, log: LongLog, version: int, path: str) -> None:
    stepper = Stepper(log, version)
    lines = views.changed(stepper).plain.partition("changed\n")[2].splitlines()
    said = Cli(file).run("diff", str(file), "--at", str(version - 1), "--to", str(version)).out.splitlines()
    told = [line.removeprefix("$.") for line in said if line.partition(":")[0] not in views.NOT_TOLD]
    assert [line.replace(", not loaded", "") for line in lines] == told, "its states hold no contents"
    assert any(line.startswith(path) for line in said)


def test_jumps_to_transitions_and_texts(log: LongLog) -> None:
    points = Stepper(log).points
    assert find(points, to_trigger("send"), 0) == 12
    assert find(points, to_text("order 1"), 0) == 12
    assert find(points, to_text('"order":"A-1"'), 0) == 15
    assert find(points, to_text('a "quoted" \\ text'), 0) is None
    with pytest.raises(ConditionError, match="did you mean send"):
        to_trigger("sends")


def test_every_version_is_reached_by_jumps_in_both_directions(log: LongLog) -> None:
    points = Stepper(log).points
    everything = parse_condition("version >= 1")
    assert [find(points, everything, version) for version in range(25)] == list(range(1, 26))
    assert [find(points, everything, version, -1) for version in range(26, 1, -1)] == list(range(25, 0, -1))


def test_moves_stay_within_the_log(log: LongLog) -> None:
    stepper = Stepper(log)
    assert (stepper.version, stepper.last) == (25, 25)
    stepper.step(1)
    assert stepper.version == 25
    stepper.step(-100)
    assert (stepper.version, stepper.event, stepper.moment()) == (0, None, None)
    stepper.go(99)
    assert (stepper.version, stepper.said) == (25, "there is no version 99; the log has 0 to 25")
    stepper.jump(JUMPS["decision"])
    assert (stepper.version, stepper.said) == (25, "nothing after version 25 where rule")
    stepper.jump(JUMPS["decision"], -1)
    assert (stepper.version, stepper.said) == (24, "")
    with pytest.raises(InvalidValue, match="no version 26"):
        Stepper(log, 26)


def test_states_are_those_of_a_fold(log: LongLog) -> None:
    stepper = Stepper(log, 0)
    recorded = list(decode_each(log.events, content=False))
    for version in range(26):
        stepper.go(version)
        assert stepper.state.control == state_at(recorded, version).control


def test_a_breakpoint_that_cannot_be_read_leaves_the_one_before(log: LongLog) -> None:
    stepper = Stepper(log, 0, parse_condition("rule == D6"))
    with pytest.raises(ConditionError):
        stepper.break_at("rule == D66")
    assert stepper.breakpoint is not None
    stepper.jump(stepper.breakpoint)
    assert stepper.version == 11
    stepper.break_at("  ")
    assert (stepper.said, bool(stepper.breakpoint)) == ("no breakpoint", False)


def test_what_changed_is_said_with_why(log: LongLog) -> None:
    stepper = Stepper(log, 11)
    said = views.changed(stepper).plain
    assert "11  turn_finished" in said
    assert "D6 finish(complete): " in said
    assert "not D5: " in said
    assert "status: 'running' -> 'waiting'" in said


def test_two_versions_are_compared(log: LongLog) -> None:
    stepper = Stepper(log, 11)
    stepper.toggle_mark()
    stepper.go(21)
    said = views.changed(stepper).plain
    assert said.startswith("from version 11 (marked) to 21")
    assert "turns: 1 -> 2" in said
    assert "status" not in said
    stepper.go(11)
    assert "nothing" in views.changed(stepper).plain
    stepper.toggle_mark()
    assert stepper.mark is None


def test_the_machine_shows_where_the_chat_stands(log: LongLog) -> None:
    for version, lit in ((1, "pending"), (5, "running"), (11, "waiting"), (25, "error")):
        stepper = Stepper(log, version)
        drawn = views.machine(stepper.state.control, stepper.event)
        bright = [drawn.plain[span.start : span.end] for span in drawn.spans if "reverse" in str(span.style)]
        assert bright == [lit]
    assert "N  none, before the first event" in views.machine(Stepper(log, 0).state.control, None).plain


def test_the_prompt_is_what_was_said_until_then(log: LongLog) -> None:
    stepper = Stepper(log)
    said = prompt(stepper.prompt(8), stepper.declared()).plain
    assert "3 messages, behind the system text and the tools of support, which no log has: --agents" in said
    assert 'calls look_up({"order":"A-0"})' in said
    assert "look_up gave [" in said
    assert "And where is order 1?" not in said
    assert "And where is order 2?" in prompt(stepper.prompt(25), stepper.declared()).plain


def test_the_prompt_has_what_an_agent_declares_today(log: LongLog) -> None:
    tools = [Tool.from_function(look_up, crash="rerun"), Tool.from_function(hidden)]
    today = Agent(name="support", system=["You help.", "Be brief."], tools=tools, active_tools=["look_up"])
    stepper = Stepper(log, 8, agents=[Agent(name="sales", system="Sell."), today])
    said = prompt(stepper.prompt(8), stepper.declared()).plain
    assert said.startswith("3 messages, behind what support declares today")
    assert said.index("You help.") < said.index("Be brief.") < said.index("look_up(order): Look an order up.")
    assert said.index("look_up(order)") < said.index("Where is order 0?")
    assert "hidden" not in said
    assert "Sell." not in said
    other = Stepper(log, 8, agents=[Agent(name="sales", system="Sell.")])
    said = prompt(other.prompt(8), other.declared()).plain
    assert said.startswith("3 messages, support is not among the agents given (sales)")


def test_the_state_has_the_text_of_its_error(log: LongLog) -> None:
    text = "config: The script has 4 turns, and none is left"
    before, failed = Stepper(log, 24), Stepper(log, 25)
    assert text not in views.state(before.state, before.error()).plain
    assert text in views.state(failed.state, failed.error()).plain
    assert text in views.changed(failed).plain


def test_states_and_events_are_shown_without_steering_the_terminal(log: LongLog) -> None:
    stepper = Stepper(log, 12)
    assert "may come next: " in views.state(stepper.state).plain
    assert "pending" in views.state(stepper.state).plain
    assert '"type": "message_sent"' in views.event(stepper.event).plain
    assert "And where is order 1?" in views.event(stepper.event).plain
    assert views.event(None).plain == "before the first event"


def test_a_line_of_the_timeline_fits(log: LongLog) -> None:
    stepper = Stepper(log)
    for width in (20, 34, 80):
        assert all(views.row(stepper.points.recorded(v), width).cell_len <= width for v in range(1, 26))
    assert views.row(stepper.points.recorded(11), 80).plain == "    11 turn_finished > waiting D6 finish(complete)"


@pytest.mark.parametrize("version", [11, 12])
def test_a_copied_test_passes(log: LongLog, file: Path, tmp_path: Path, version: int) -> None:
    moment = Stepper(log, version).moment()
    assert moment is not None
    text = as_test(moment, log.name, str(file))
    (tmp_path / "test_copied.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, f"def test_help_1_at_version_{version}" in text) == (0, True), done.stdout


def test_a_copied_test_fails_where_the_log_goes_otherwise(log: LongLog, file: Path) -> None:
    moment = Stepper(log, 11).moment()
    assert moment is not None
    text = as_test(moment, log.name, str(file)).replace("'waiting'", "'error'")
    names: dict[str, object] = {}
    exec(text, names)  # noqa: S102 -- the text of a test of ours
    with pytest.raises(AssertionError):
        names["test_help_1_at_version_11"]()  # type: ignore[operator]
