"""Commands that read files make no socket and start no process; and they say what is not there."""

import asyncio
import socket
import subprocess
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import pytest
from msgspec.structs import replace

from chatfold.cli.output import Out
from chatfold.cli.sources import all_named, opened
from chatfold.replaying.logs import LogSource
from chatfold.stepper.longlog import open_long
from tests.chatfold.cli.kit import Cli
from tests.chatfold.replaying.kit import events_of, helped, written
from tests.chatfold.replaying.pair import recorded


@pytest.fixture
def file(chats: Cli, tmp_path: Path) -> str:
    """A log file, and no database beside it."""
    name = str(tmp_path / "talk.jsonl")
    chats.ok("export", "talk", "--output", name)
    chats.file.unlink()
    return name


@pytest.fixture
def cut_off(file: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log file, where no socket, no process and no event loop can be made any more."""

    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise RuntimeError("a socket, a process or an event loop")

    monkeypatch.setattr(socket, "socketpair", refuse)
    monkeypatch.setattr(socket.socket, "__init__", refuse)
    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(asyncio.events, "new_event_loop", refuse)
    return file


@pytest.mark.parametrize(
    "command",
    [
        ["show"],
        ["replay"],
        ["replay", "--at", "3"],
        ["verify"],
        ["graph"],
        ["replay", "--json"],
        ["replay", "--decide", "--all", "--jobs", "1"],
        ["why"],
        ["why", "--all"],
    ],
    ids=" ".join,
)
def test_a_file_is_read_without_a_socket(cli: Cli, cut_off: str, command: list[str]) -> None:
    assert cli.ok(command[0], cut_off, *command[1:]).out
    assert cli.ok(command[0], "-", *command[1:], stdin=Path(cut_off).read_bytes()).out


@pytest.mark.usefixtures("cut_off")
def test_what_is_cut_off_is_what_would_be_noticed() -> None:
    for make in (asyncio.Runner().get_loop, socket.socketpair, socket.socket, partial(subprocess.run, ["true"])):
        with pytest.raises(RuntimeError, match="a socket, a process or an event loop"):
            make()


def test_a_chat_and_a_file_give_the_same_log(chats: Cli, tmp_path: Path) -> None:
    name = str(tmp_path / "talk.jsonl")
    chats.ok("export", "talk", "--output", name)
    with opened(Out(), name, None, None) as of_file, opened(Out(), "talk", chats.url, None) as of_chat:
        assert of_file.events == of_chat.events
        assert (of_file.name, of_chat.name) == (name, "talk")


def test_what_is_named_is_found(chats: Cli, tmp_path: Path) -> None:
    for chat in ("talk", "asks"):
        (tmp_path / "logs").mkdir(exist_ok=True)
        chats.ok("export", chat, "--output", str(tmp_path / "logs" / f"{chat}.jsonl"))
    found = all_named([str(tmp_path / "logs"), "broken"], chats.url, None)
    assert [source.read().chat for source in found] == ["asks", "talk", "broken"]


def test_a_place_without_a_log_is_a_wrong_command_line(cli: Cli) -> None:
    gone = cli.run("replay", "gone.jsonl")
    assert (gone.code, "there is no file gone.jsonl" in gone.err) == (2, True)
    assert cli.run("verify", str(cli.file.parent)).code == 2


READING: Final = (
    ["show"], ["replay"], ["replay", "--at", "9"], ["why"], ["doctor"], ["report"], ["graph"], ["graph", "--svg"],
    ["diff", "--at", "3"], ["bisect", "--when", "steps"],
)  # fmt: skip


@pytest.fixture
def spliced(tmp_path: Path) -> str:
    """A log with events of another chat in it, under a chain of digests that is sound."""
    one, other = events_of(helped()), recorded()
    events = [*one[:20], *other[4:8], *one[20:]]
    numbered = [replace(each, envelope=replace(each.envelope, version=at)) for at, each in enumerate(events, 1)]
    return written(tmp_path / "spliced.jsonl", numbered)


def test_the_debugger_says_it_too(spliced: str) -> None:
    fault = open_long(LogSource("file", spliced)).fault()
    assert fault is not None
    assert fault.startswith("it is not whole, from version 21 on: ")


@pytest.mark.parametrize("command", [["rerun"], ["record", "-o", "recorded"]], ids=" ".join)
def test_it_is_not_run_again_or_recorded(cli: Cli, spliced: str, command: list[str]) -> None:
    done = cli.run(command[0], spliced, *command[1:])
    assert (done.code, "it is not whole, from version 21 on: " in done.out) == (1, True), done


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_log_with_events_of_another_chat_is_read_under_the_same_warning(
    cli: Cli, spliced: str, command: list[str]
) -> None:
    done = cli.run(command[0], spliced, *command[1:])
    assert done.code == 1
    assert done.err.startswith(f"{spliced} is not whole, from version 21 on: "), done
    assert done.err.splitlines()[0].endswith(" more of the kind; `chatfold verify` says more")
