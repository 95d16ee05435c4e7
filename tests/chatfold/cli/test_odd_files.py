"""What is no log, and versions that no log has, end each command that looks at logs with a sentence and code 2."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Final

import pytest

from tests.chatfold.cli.kit import Cli
from tests.chatfold.stepper.kit import of_a_newer_release, written

COMMANDS: Final = [
    ("replay", "{}"), ("why", "{}"), ("bisect", "{}", "--when", "status == error"), ("diff", "{}", "good.jsonl"),
    ("diff", "good.jsonl", "{}"), ("graph", "{}", "--svg"), ("graph", "{}", "--timeline"), ("report", "{}", "-o", "r"),
    ("step", "{}"), ("show", "{}"), ("import", "{}"), ("doctor", "{}"),
    ("corpus", "add", "{}", ".", "--note", "added", "--name", "r"),
]  # fmt: skip
OF_MANY: Final = [
    (2, "verify", "{}"), (1, "rerun", "{}"), (1, "record", "{}", "-o", "made"), (2, "replay", "{}", "--decide"),
    (1, "replay", "good.jsonl", "{}", "--decide"),
]  # fmt: skip
"""They look at several logs: one of them that cannot be read is what they found."""

ODD: Final = {
    "empty": "line 1: the file is empty",
    "binary": "line 1: no",
    "text": "line 1: no header: the first line of a log is",
    "cut": "line 26",
    "two": "line",
    "gap": "line 24: 23 events, the header says 25: lines are missing or added",
    "folder": "folder",
    "loop": "round in a circle",
    "marked": "line 1: the file begins with a byte order mark",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    whole = written(folder).read_bytes()
    lines = whole.splitlines(keepends=True)
    contents = {
        "good": whole,
        "empty": b"",
        "binary": bytes(range(256)) * 8,
        "text": b"hello\n",
        "cut": whole[:-40],
        "two": whole * 2,
        "gap": b"".join([*lines[:6], *lines[8:]]),
        "marked": codecs.BOM_UTF8 + whole,
    }
    for name, content in contents.items():
        (folder / f"{name}.jsonl").write_bytes(content)
    (folder / "folder.jsonl").mkdir()
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    return folder


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path / "chats.db")


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_no_log_is_refused_by_name(
    cli: Cli, odd: Path, name: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(odd)
    ended = cli.run(*(part.format(f"{name}.jsonl") for part in command))
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert f"{name}.jsonl" in ended.err
    assert ODD[name] in ended.err
    assert "Traceback" not in ended.err
    assert not (odd / "r").exists()


@pytest.mark.parametrize(("code", "command"), [(code, command) for code, *command in OF_MANY])
def test_of_several_logs_the_one_is_named_that_cannot_be_opened(
    cli: Cli, odd: Path, code: int, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(odd)
    ended = cli.run(*(part.format("loop.jsonl") for part in command))
    alone = 2 if command == ["rerun", "{}"] else code  # what is not there is a wrong command line where it is all
    assert (ended.code, "round in a circle" in ended.out + ended.err) == (alone, True), ended
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", [each for each in COMMANDS if each[0] != "step"], ids=" ".join)
def test_an_event_of_a_newer_release_is_told_with_its_line(
    cli: Cli, odd: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(odd)
    (odd / "newer.jsonl").write_bytes(of_a_newer_release((odd / "good.jsonl").read_bytes(), 6))
    ended = cli.run(*(part.format("newer.jsonl") for part in command))
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert "newer.jsonl, line 7: unknown event type 'teleported' at version 6" in ended.err
    assert not (odd / "r").exists()


@pytest.mark.parametrize(("name", "why"), [("newer", "line 7: unknown event type"), ("missing", "events are missing")])
def test_of_a_corpus_the_log_is_named_that_cannot_be_read(
    cli: Cli, odd: Path, name: str, why: str, tmp_path: Path
) -> None:
    good = (odd / "good.jsonl").read_bytes()
    lines = good.splitlines(keepends=True)
    header = lines[0].replace(b'"events":25', b'"events":24')
    bad = of_a_newer_release(good, 6) if name == "newer" else b"".join([header, *lines[1:5], *lines[6:]])
    for file, data in (("good", good), (name, bad)):
        (tmp_path / f"{file}.jsonl").write_bytes(data)
    ended = cli.run("corpus", "coverage", str(tmp_path))
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert f"{name}.jsonl" in ended.err
    assert why in ended.err


@pytest.mark.parametrize("version", ["-1", "26", "x", "1.5"])
@pytest.mark.parametrize(
    "command",
    [
        ("replay", "good.jsonl", "--at", "{}"), ("diff", "good.jsonl", "--at", "{}", "--to", "3"),
        ("diff", "good.jsonl", "--at", "3", "--to", "{}"), ("step", "good.jsonl", "--at", "{}"),
        ("why", "good.jsonl", "--", "{}"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_version_that_there_is_not_is_refused(
    cli: Cli, odd: Path, version: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(odd)
    ended = cli.run(*(part.format(version) for part in command))
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert ("no version 26; its last is 25" if version == "26" else "Invalid value for '") in ended.err
