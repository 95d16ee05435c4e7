"""Logs wherever they are: what an argument names is found, read as it is, and said where it is not there."""

from __future__ import annotations

import contextlib
import copy
import errno
import io
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from unittest import mock

import pytest
from msgspec.structs import replace

from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs, read_file
from events.codec import decode
from events.content import Content
from events.errors import LogFileError
from events.ids import ChatId
from events.logfile import header_of, write_log
from events.vocabulary import ChatCreated, MessageSent, TitleChanged
from tests.chatfold.stepper.kit import opened
from tests.events.logs import log_of, text

LOG = log_of(
    [
        ChatCreated(chat="chat-1", owner="user-1", agent="assistant", release="0.1.0"),
        MessageSent(added=(text("Hello"),)),
        TitleChanged(title=Content("A title")),
    ]
)


def no_store() -> str:
    raise AssertionError("no chat was named")


def written(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    header = header_of(ChatId("chat-1"), LOG.events, release="0.1.0")
    file.write_bytes(b"".join(write_log(header, LOG.events)))
    return file


def files(folder: Path, *arguments: str) -> list[str]:
    """What is found, as paths within the folder."""
    found = find_logs([str(folder / argument) for argument in arguments], no_store)
    assert all(source.place == "file" for source in found)
    return [str(Path(source.where).relative_to(folder)) for source in found]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.jsonl", "a.jsonl", "deep/er/c.jsonl", "deep/d.jsonl"):
        written(tmp_path / name)
    (tmp_path / "notes.md").write_text("no log")
    (tmp_path / "deep" / "folder.jsonl").mkdir()
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_a_file_is_read_as_it_is(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl")
    log = find_log(str(file), no_store).read()
    assert (log.name, log.chat, log.events) == (str(file), "chat-1", tuple(LOG.events))
    assert log.recorded() == [decode(stored) for stored in LOG.events]
    assert list(log.bare()) == [decode(stored, content=False) for stored in LOG.events]
    assert log.altered() is None


def test_what_was_changed_is_told() -> None:
    changed = replace(LOG.events[1], facts=LOG.events[1].facts.replace(b"{", b'{"x":1,', 1))
    altered = Log(name="x", chat="x", events=(LOG.events[0], changed, LOG.events[2]), blobs={}).altered()
    assert altered is not None
    assert altered.version == 2


def test_stdin_is_a_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = written(tmp_path / "a.jsonl").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    log = find_log("-", no_store).read()
    assert (log.name, log.events) == ("<stdin>", tuple(LOG.events))


def test_a_folder_and_a_pattern_are_all_their_logs_by_name(folder: Path) -> None:
    everything = ["a.jsonl", "b.jsonl", "deep/d.jsonl", "deep/er/c.jsonl"]
    assert files(folder, ".") == everything
    assert files(folder, "deep") == ["deep/d.jsonl", "deep/er/c.jsonl"]
    assert files(folder, "*.jsonl") == ["a.jsonl", "b.jsonl"]
    assert files(folder, "**/*.jsonl") == everything
    assert files(folder, "[ax].jsonl") == ["a.jsonl"]


def test_each_log_is_found_once_in_the_order_of_the_arguments(folder: Path) -> None:
    assert files(folder, "b.jsonl", "*.jsonl", "b.jsonl") == ["b.jsonl", "a.jsonl"]


def test_a_file_whose_name_is_a_pattern_is_that_file(folder: Path) -> None:
    written(folder / "[a].jsonl")
    assert files(folder, "[a].jsonl") == ["[a].jsonl"]


@pytest.mark.parametrize(
    ("argument", "why"),
    [("empty", "no log files"), ("*.log/x*", "no file is named like"), ("empty/*.jsonl", "no file is named like")],
)
def test_a_place_without_logs_is_refused(folder: Path, argument: str, why: str) -> None:
    with pytest.raises(SourceNotFound, match=why):
        files(folder, argument)


def test_stdin_beside_others_is_refused() -> None:
    with pytest.raises(SourceNotFound, match="beside others"):
        find_logs(["-", "a.jsonl"], no_store)
    assert [source.place for source in find_logs(["-"], no_store)] == ["stdin"]


def test_a_chat_has_the_store_that_is_asked_for_once() -> None:
    asked = []

    def store() -> str:
        asked.append(1)
        return "sqlite:///x.db"

    found = find_logs(["chat-1", "chat-2", "chat*"], store)
    assert [(source.place, source.where, source.store) for source in found] == [
        ("chat", name, "sqlite:///x.db") for name in ("chat-1", "chat-2", "chat*")
    ]
    assert asked == [1]


def test_a_source_can_be_handed_over_and_shows_no_password() -> None:
    source = LogSource("chat", "chat-1", "postgresql://me:secret@db/chats")
    assert copy.deepcopy(source) == source
    assert "secret" not in repr(source) + str(source)


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFound, match="there is no file") as caught:
        read_file(str(tmp_path / "gone.jsonl"))
    again = copy.copy(caught.value)  # which goes the way of a pickle
    assert (again.source, str(again)) == (caught.value.source, str(caught.value))
    with pytest.raises(SourceNotFound, match="none is named"):
        LogSource("chat", "chat-1").read()
    (tmp_path / "x.jsonl").write_text("no log\n")
    with pytest.raises(LogFileError, match="line 1"):
        LogSource("file", str(tmp_path / "x.jsonl")).read()


@pytest.mark.parametrize(
    "read", [lambda name: LogSource("file", name).read(), lambda name: opened(Path(name))], ids=["whole", "long"]
)
def test_what_cannot_be_opened_is_told_by_what_it_is(read: Callable[[str], object], tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "gone.jsonl")
    written(tmp_path / "log.jsonl")
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(tmp_path):
        server.bind("socket")
        for name, why in {
            "gone.jsonl": "there is no file gone.jsonl",
            "dangling.jsonl": "there is no file dangling.jsonl",
            "log.jsonl/x.jsonl": "there is no file",
            "./": "is a folder",
            "loop.jsonl": "round in a circle",
            f"{'x' * 300}.jsonl": "no name may be as long",
            "a\0.jsonl": "NUL byte",
            "./socket": "a socket",
        }.items():
            assert find_log(name, no_store).place == "file"
            with pytest.raises(SourceNotFound, match=why):
                read(name)
            assert [source.where for source in find_logs([name], no_store)] == [name] or name == "./"
        with (
            mock.patch.object(Path, "open", side_effect=PermissionError(errno.EACCES, "Permission denied")),
            pytest.raises(SourceNotFound, match=r"log\.jsonl may not be read by this user"),
        ):
            read("log.jsonl")
        with pytest.raises(LogFileError, match="the file is empty"):
            read("/dev/null")


def test_a_pipe_is_read_as_a_file_is(tmp_path: Path) -> None:
    data = written(tmp_path / "a.jsonl").read_bytes()
    os.mkfifo(tmp_path / "pipe")
    for read in (read_file, lambda name: opened(Path(name))):
        writer = Thread(target=(tmp_path / "pipe").write_bytes, args=[data])
        writer.start()
        assert tuple(read(str(tmp_path / "pipe")).events) == tuple(LOG.events)
        writer.join()


def test_a_link_that_leads_nowhere_is_a_file_and_no_chat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    assert find_log("loop", no_store).place == "file"
