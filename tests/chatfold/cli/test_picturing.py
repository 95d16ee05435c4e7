"""`graph --svg`, `--times`, `--timeline` and `report`: into a file or to stdout, of a log file or a chat."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.chatfold.cli.kit import Cli


@pytest.mark.parametrize("options", [["--svg"], ["--times"], ["--times", "--states"], ["--timeline"]], ids=" ".join)
def test_pictures_of_a_chat(chats: Cli, options: list[str], tmp_path: Path) -> None:
    done = chats.ok("graph", "talk", *options)
    assert ET.fromstring(done.out).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 -- our own
    (line,) = chats.ok("graph", "talk", *options, "--json").lines
    assert (line["format"], line["text"] + "\n") == ("svg", done.out)
    said = chats.ok("graph", "talk", *options, "-o", "chat.svg")
    assert (said.out, said.err) == ("", "wrote chat.svg\n")
    assert (tmp_path / "chat.svg").read_text(encoding="utf-8") == done.out


def test_the_machine_alone_is_a_picture_too(cli: Cli) -> None:
    assert "require_action" in cli.ok("graph", "--svg").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--times"], "--times and --timeline draw a chat"),
        (["--timeline"], "--times and --timeline draw a chat"),
        (["talk", "--svg", "--dot"], "leave one of them out"),
    ],
)
def test_what_cannot_be_drawn(chats: Cli, arguments: list[str], said: str) -> None:
    done = chats.run("graph", *arguments)
    assert done.code == 2
    assert said in done.err


def test_a_report_of_a_chat_and_of_its_log(chats: Cli, tmp_path: Path) -> None:
    page = chats.ok("report", "talk").out
    assert page.startswith("<!DOCTYPE html>")
    assert "A talk" in page
    log = chats.ok("export", "talk").out
    assert chats.ok("report", "-", stdin=log).out == page
    chats.ok("report", "talk", "-o", "talk.html")
    assert (tmp_path / "talk.html").read_text(encoding="utf-8") == page


def test_an_altered_log_is_reported_under_a_warning(chats: Cli) -> None:
    altered = chats.ok("export", "talk").out.replace('"Second"', '"Fourth"', 1)
    done = chats.run("report", "-", stdin=altered)
    assert done.code == 1
    assert '<p class="warn">This log was altered, from version ' in done.out
