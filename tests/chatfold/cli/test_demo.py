"""`demo` shows what it says it shows: the log it leaves behind is sound, and tells the same story."""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from chatfold.cli.places import command
from tests.chatfold.cli.kit import Cli, Ended


@pytest.fixture(scope="module", autouse=True)
def kept_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have the demonstration leave its databases where tests leave theirs."""
    with patch.object(tempfile, "tempdir", str(tmp_path_factory.mktemp("left"))):
        yield


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return Cli(tmp_path_factory.mktemp("demo") / "unused.db").ok("demo", "--delay", "0.001")


@pytest.fixture
def url(shown: Ended) -> str:
    found = re.search(r"chatfold replay --db (\S+) demo --at 9\n$", shown.out)
    assert found
    return found[1]


def test_it_shows_all_that_it_promises(shown: Ended) -> None:
    steps = [
        "user: How warm is it in Oslo",
        "[calls get_temperature(",
        "[result: ",
        "2. While it talks, another message",
        "[calls get_home_city(",
        "3. A tool that the client runs",
        "you live in Bergen",
        "[the queued message's turn]",
        "4. In the middle of the answer",
        "[interrupted here; what was said is kept]",
        "5. What was said is kept.",
        "nothing but the fold of its log",
        "Here is its log",
    ]
    places = [shown.out.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)
    assert "never said" not in shown.out
    assert shown.err == ""


def test_its_timeline_is_that_of_the_file_it_keeps(shown: Ended, url: str, cli: Cli) -> None:
    again = cli.ok("replay", "demo", "--db", url).out
    assert again in shown.out
    cli.ok("verify", "--all", "--db", url)
    lines = cli.ok("replay", "demo", "--db", url, "--json").lines
    events = [line["event"] for line in lines]
    assert {"tool_result_recorded", "action_required", "results_submitted", "turn_interrupted", "turn_resumed"} < set(
        events
    )
    queued = next(line for line in lines if line["event"] == "message_sent")
    assert (queued["state_before"], queued["state_after"]) == ("R0", "R1")
    assert (lines[-1]["event"], lines[-1]["state_after"]) == ("turn_finished", "W")
    assert "version   9 of" in cli.ok("replay", "demo", "--db", url, "--at", "9").out


@pytest.mark.parametrize(
    ("typed", "on_path", "shown_as"),
    [
        ("bin/chatfold", None, "bin/chatfold"),
        ("bin/chatfold", "other", "bin/chatfold"),
        ("bin/chatfold", "bin", "chatfold"),
        ("bin/python/__main__.py", None, f"{sys.executable} -m chatfold"),
        ("-c", None, "chatfold"),
    ],
)
def test_the_command_it_names_works_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, on_path: str | None, shown_as: str
) -> None:
    for folder in ("bin", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chatfold").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / on_path) if on_path else "")
    monkeypatch.setattr(sys, "argv", [typed])
    assert command("replay", "a b") == f"{shown_as} replay 'a b'"


def test_json(cli: Cli) -> None:
    lines = cli.ok("demo", "--json", "--delay", "0").lines
    assert {line["kind"] for line in lines} >= {"said", "event", "part"}
    timeline = [line for line in lines if line["kind"] == "event" and line["state_after"] is not None]
    assert [line["version"] for line in timeline] == list(range(1, len(timeline) + 1))
    assert not cli.file.exists()
    file = re.search(r"SQLite file, (\S+)\. ", lines[0]["text"])
    assert file
    assert Path(file[1]).is_file()
