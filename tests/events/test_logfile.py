"""Log files: the very bytes come back, and each defect of a file is named with its line."""

from __future__ import annotations

import codecs
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.content import Content
from events.digest import GENESIS, verify_chain
from events.errors import LogFileError, MalformedEvent
from events.ids import ChatId
from events.logfile import LogFile, event_line, header_of, parse_event_line, read_log, write_log
from events.values import Limits
from events.vocabulary import ChatArchived, ChatCreated, MessageSent, TitleChanged
from tests.events.logs import Log, log_of, text
from tests.events.strategies import DRAFTS, EVENTS

CHAT = ChatId("chat-1")
SAMPLE = log_of(
    [
        ChatCreated(chat="chat-1", owner="user-1", agent="assistant", release="0.1.0", flags=(1, 2)),
        MessageSent(added=(text('line\u2028 and \x00 and \x85 and "quotes" and 😀'),)),
        TitleChanged(title=Content("x" * 100)),
        ChatArchived(),
    ],
    Limits(blob_bytes=64),
)


def written(log: Log = SAMPLE, *, packed: bool = False) -> list[bytes]:
    blobs = log.blobs if packed else {}
    header = header_of(CHAT, log.events, release="0.1.0", flags=(1, 2), blobs=blobs)
    return list(write_log(header, log.events, blobs))


def refused(lines: list[Any]) -> LogFileError:
    with pytest.raises(LogFileError) as caught:
        read_log(lines, "a.jsonl")
    assert caught.value.name == "a.jsonl"
    assert str(caught.value) == f"a.jsonl, line {caught.value.line}: {caught.value.why}"
    return caught.value


def test_the_header_says_what_follows() -> None:
    head = SAMPLE.events[-1].digest.hex()
    assert written()[0] == (
        f'{{"chatfold_log":1,"chat":"chat-1","release":"0.1.0","events":4,"head":"{head}","flags":[1,2],"blobs":0}}\n'.encode()
    )


def test_facts_and_content_stand_in_their_line_byte_for_byte() -> None:
    for line, stored in zip(written()[1:], SAMPLE.events, strict=True):
        assert b'"facts":' + stored.facts in line
        assert not stored.content or b'"content":' + stored.content in line
        assert line.count(b"\n") == 1


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(EVENTS, max_size=3), DRAFTS, st.booleans())
def test_any_log_comes_back_byte_for_byte(events: list[Any], draft: Any, packed: bool) -> None:
    log = Log(limits=Limits(blob_bytes=8))
    for event in events:
        log.add(event, draft)
    lines = written(log, packed=packed)
    read = read_log(lines, "a.jsonl")
    assert read.events == tuple(log.events)
    assert read.blobs == (log.blobs if packed else {})
    assert list(write_log(read.header, read.events, read.blobs)) == lines
    assert verify_chain(read.events, read.blobs) == (log.events[-1].digest if events else GENESIS)


def test_lines_may_be_text_or_bytes_with_any_line_break_or_none() -> None:
    lines = written(packed=True)
    expected = read_log(lines, "a.jsonl")
    assert isinstance(expected, LogFile)
    assert len(expected.blobs) == 1
    for variant in (
        [line.rstrip(b"\n") for line in lines],
        [line.decode() for line in lines],
        [line.replace(b"\n", b"\r\n") for line in lines],
    ):
        assert read_log(variant, "a.jsonl") == expected


def test_an_event_line_alone() -> None:
    for stored in SAMPLE.events:
        assert parse_event_line(event_line(stored)) == stored


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (b"\n", "the line is empty"),
        (b"PK\x03\x04\n", "no header"),
        (b"[1]\n", "no header"),
        (b'{"version":1}\n', "no header"),
        (b'{"chatfold_log":true}\n', "no header"),
        (b'{"chatfold_log":0}\n', "no header"),
        (b'{"chatfold_log":2,"anything":[]}\n', "format 2, this release reads up to 1"),
        (b'{"chatfold_log":1}\n', "wrong header"),
        (b'{"chatfold_log":1,"chat":7,"release":"","events":0,"head":"","flags":[],"blobs":0}\n', "wrong header"),
        (b'{"chatfold_log":1', "no header"),
        (b"[" * 100_000, "no header"),
        (b"\xfe{\n", "not UTF-8"),
        ('{"chatfold_log":1}\n'.encode("utf-8-sig"), "begins with a byte order mark: save it as UTF-8 without one"),
        *(('{"chatfold_log":1}'.encode(name), "a byte order mark") for name in ("utf-16", "utf-32")),
        (codecs.BOM_UTF16_BE + '{"chatfold_log":1}'.encode("utf-16-be"), "a byte order mark"),
        ('\ufeff{"chatfold_log":1}', "a byte order mark"),
    ],
)
def test_a_wrong_first_line(first: bytes | str, why: str) -> None:
    error = refused([first, *written()[1:]])
    assert (error.line, why in error.why) == (1, True), error


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (b'"chat":"chat-1"', b'"chat":"chat-2"', "the header's chat is 'chat-2', the first event's 'chat-1'"),
        (b'"flags":[1,2]', b'"flags":[99]', "the header's flags are [99], the chat's [1, 2]"),
        (b'"release":', b'"chat":"chat-1","release":', "the key 'chat' stands twice in its object"),
    ],
)
def test_a_header_that_says_what_the_log_does_not(before: bytes, after: bytes, why: str) -> None:
    lines = written()
    error = refused([lines[0].replace(before, after), *lines[1:]])
    assert (error.line, why in error.why) == (1, True), error


def test_a_key_that_stands_twice_in_a_line() -> None:
    lines = written(packed=True)
    for at, key, more in ((2, b'"version":', b"2"), (2, b'"kind":', b'"user"'), (5, b'"value":', b'"x"')):
        assert key in lines[at]
        error = refused([*lines[:at], lines[at].replace(key, key + more + b"," + key), *lines[at + 1 :]])
        assert error.line == at + 1
        assert "stands twice in its object" in error.why


def test_an_empty_file() -> None:
    assert "empty" in refused([]).why


def test_a_line_cut_off() -> None:
    lines = written()
    for end in (1, 40, len(lines[2]) // 2, len(lines[2]) - 3):
        error = refused([*lines[:2], lines[2][:end]])
        assert error.line == 3
        assert error.why.startswith(("the line is cut off", "not UTF-8", "not JSON")), end
    assert refused([*lines[:2], lines[2][:40]]).why == "the line is cut off"


def test_lines_missing_added_or_swapped() -> None:
    lines = written()
    error = refused(lines[:-1])
    assert (error.line, error.why) == (4, "3 events, the header says 4: lines are missing or added")
    assert "5 events" in refused([*lines, lines[-1]]).why
    assert "digest is not the header's" in refused([*lines[:3], lines[4], lines[3]]).why
    assert "0 events" in refused(lines[:1]).why
    packed = written(packed=True)
    assert "0 blobs, the header says 1" in refused(packed[:-1]).why
    assert "an event after the blobs" in refused([*packed[:4], packed[5], packed[4]]).why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\n", "the line is empty"),
        (b"garbage\n", "not JSON"),
        (b"{garbage}\n", "not JSON"),
        (b"{}\n", "not a line of a log"),
        (b"[]\n", "not a line of a log"),
        (b"\xff\n", "not UTF-8"),
        (b'{"blob":"00","value":1}\n', "have another digest"),
        (b'{"blob":"00"}\n', "not a line of a log"),
        (written()[2].replace(b'"digest":"', b'"digest":"0'), "hexadecimal"),
        (written()[2].replace(b'"digest":"', b'"digest":"Z'), "hexadecimal"),
        (written()[2].replace(b'"index":0', b'"index":"0"'), "not a line of a log"),
        (written()[2].replace(b'"dest":"waiting"', b'"dest":"asleep"'), "not a line of a log"),
        (b'{"facts":' + b"[" * 100_000, "cut off"),
    ],
)
def test_a_line_that_is_no_event(line: bytes, why: str) -> None:
    lines = written()
    error = refused([*lines[:2], line, *lines[3:]])
    assert (error.line, why in error.why) == (3, True), error


def test_a_lone_surrogate_in_a_text_line() -> None:
    assert "not UTF-8" in refused([written()[0].decode(), "\ud800"]).why


def test_bytes_that_would_not_come_back_are_not_written() -> None:
    for facts in (b"{\n}", b"{} ", b"", b'{"a":\r1}'):
        with pytest.raises(MalformedEvent, match="version 1"):
            event_line(msgspec.structs.replace(SAMPLE.events[0], facts=facts))


def test_a_header_that_does_not_fit_is_noticed() -> None:
    header = header_of(CHAT, SAMPLE.events[:2], release="0.1.0")
    with pytest.raises(LogFileError, match="4 events, the header says 2"):
        list(write_log(header, SAMPLE.events))
