"""The chain of digests: any byte that changes is found and its version named; erasing alone changes no digest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.codec import decode
from events.content import Content
from events.contentlist import content_blobs, erase_items, item_hashes, parse_items
from events.digest import GENESIS, envelope_bytes, verify_chain
from events.envelope import StoredEvent
from events.errors import DigestMismatch, MalformedEvent
from events.records import Actor
from events.values import Limits
from events.vocabulary import ChatCreated, MessageSent, TitleChanged
from tests.events.logs import Log, log_of, text
from tests.events.strategies import DRAFTS, EVENTS

SAMPLE = log_of(
    [
        ChatCreated(chat="chat-1", owner="user-1", agent="assistant", release="0.1.0", title=Content("a title")),
        MessageSent(added=(text("first"), text("second"))),
        TitleChanged(title=Content({"any": ["JSON", 1, None]})),
        MessageSent(added=(text("x" * 100),)),
    ],
    Limits(blob_bytes=64),
)
EVENTS_OF_SAMPLE = tuple(SAMPLE.events)


def _with(version: int, **changes: Any) -> list[StoredEvent]:
    events = list(EVENTS_OF_SAMPLE)
    events[version - 1] = msgspec.structs.replace(events[version - 1], **changes)
    return events


def _named(events: list[StoredEvent], blobs: dict[str, bytes] | None = None) -> int:
    with pytest.raises(DigestMismatch) as caught:
        verify_chain(events, blobs)
    return caught.value.version


def test_the_log_as_written_verifies() -> None:
    assert verify_chain(EVENTS_OF_SAMPLE) == EVENTS_OF_SAMPLE[-1].digest
    assert verify_chain(EVENTS_OF_SAMPLE, SAMPLE.blobs) == EVENTS_OF_SAMPLE[-1].digest
    assert verify_chain([]) == GENESIS


@pytest.mark.parametrize("version", range(1, 5))
@pytest.mark.parametrize("section", ["facts", "content", "digest"])
def test_each_flipped_byte_is_found(version: int, section: str) -> None:
    stored = bytes(getattr(EVENTS_OF_SAMPLE[version - 1], section))
    for at in range(len(stored)):
        for bit in (1, 32):
            changed = stored[:at] + bytes([stored[at] ^ bit]) + stored[at + 1 :]
            assert _named(_with(version, **{section: changed})) == version, (at, bit)


@pytest.mark.parametrize("version", range(1, 5))
@pytest.mark.parametrize("section", ["facts", "content"])
def test_each_byte_put_in_or_left_out_is_found(version: int, section: str) -> None:
    stored = bytes(getattr(EVENTS_OF_SAMPLE[version - 1], section))
    for at in range(len(stored)):
        assert _named(_with(version, **{section: stored[:at] + b" " + stored[at:]})) == version
        assert _named(_with(version, **{section: stored[:at] + stored[at + 1 :]})) == version


@pytest.mark.parametrize(
    "change",
    [
        {"type": "title_change"},
        {"schema": 2},
        {"recorded_at": EVENTS_OF_SAMPLE[1].envelope.recorded_at + 1},
        {"actor": Actor(kind="worker", id="user-1")},
        {"actor": Actor(kind="user", id="user-2")},
        {"actor": Actor(kind="user")},
        {"source": "error"},
        {"dest": "pending"},
        {"command": "command-2"},
        {"index": 1},
        {"version": 3},
    ],
    ids=str,
)
def test_each_changed_field_of_the_envelope_is_found(change: dict[str, Any]) -> None:
    envelope = msgspec.structs.replace(EVENTS_OF_SAMPLE[1].envelope, **change)
    assert _named(_with(2, envelope=envelope)) == 2


def test_blobs_given_are_checked() -> None:
    digest, value = next(iter(SAMPLE.blobs.items()))
    assert content_blobs(EVENTS_OF_SAMPLE[3].content) == (digest,)
    for at in range(len(value)):
        changed = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
        assert _named(list(EVENTS_OF_SAMPLE), {digest: changed}) == 4
    assert _named(list(EVENTS_OF_SAMPLE), {digest: value + b" "}) == 4


def test_events_left_out_swapped_or_repeated_are_found() -> None:
    one, two, three, four = EVENTS_OF_SAMPLE
    assert _named([two, three, four]) == 1
    assert _named([one, three, four]) == 2
    assert _named([one, three, two, four]) == 2
    assert _named([one, one]) == 2


def test_time_never_goes_backwards() -> None:
    log = log_of([TitleChanged(title=Content("x")), TitleChanged(title=Content("y"))])
    late = msgspec.structs.replace(log.events[0].envelope, recorded_at=log.events[1].envelope.recorded_at + 1)
    first = msgspec.structs.replace(log.events[0], envelope=late)
    with pytest.raises(DigestMismatch, match="version 1: its digest"):
        verify_chain([first, log.events[1]])
    backwards = msgspec.structs.replace(log.events[1].envelope, recorded_at=1)
    with pytest.raises(DigestMismatch, match="version 2: recorded_at goes backwards"):
        verify_chain([log.events[0], msgspec.structs.replace(log.events[1], envelope=backwards)])


def test_no_byte_can_move_between_sections() -> None:
    stored = log_of([TitleChanged(title=Content("x"))]).events[0]
    moved = msgspec.structs.replace(stored, facts=stored.facts + item_hashes(stored.content), content=b"")
    with pytest.raises(DigestMismatch):
        verify_chain([moved])


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=3), DRAFTS, st.data())
def test_erasing_any_items_keeps_chain_and_facts(events: list[Any], draft: Any, data: st.DataObject) -> None:
    log = Log(limits=Limits(blob_bytes=8))
    for event in events:
        log.add(event, draft)
    erased = []
    for stored in log.events:
        count = len(parse_items(stored.content))
        places = data.draw(st.sets(st.integers(0, count - 1))) if count else set()
        content = erase_items(stored.content, places)
        assert erase_items(content, places) == content
        erased.append(msgspec.structs.replace(stored, content=content))
    assert verify_chain(erased, log.blobs) == log.events[-1].digest
    for before, after in zip(log.events, erased, strict=True):
        assert decode(after, content=False) == decode(before, content=False)


def test_erasing_one_message_leaves_the_other_and_no_trace_of_its_own() -> None:
    stored = EVENTS_OF_SAMPLE[1]
    content = erase_items(stored.content, [0])
    assert b"first" not in content
    assert b"second" in content
    salt = parse_items(stored.content)[0].s
    assert isinstance(salt, str)
    assert salt.encode() not in content
    assert verify_chain(_with(2, content=content)) == EVENTS_OF_SAMPLE[-1].digest
    with pytest.raises(IndexError):
        erase_items(stored.content, [2])


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"{}",
        b"[{}]",
        b'[{"h":"00"}]',
        b'[{"s":"00","v":1}]',
        b'[{"v":1}]',
        b'[{"h": "' + b"0" * 64 + b'"}]',
        b"\xff",
    ],
)
def test_content_that_is_no_list_of_items_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedEvent):
        item_hashes(content)


def test_the_envelope_is_a_json_array_without_the_chat() -> None:
    assert envelope_bytes(EVENTS_OF_SAMPLE[1].envelope) == (
        b'[2,"message_sent",1,1790000002000000,["user","user-1"],"waiting","waiting","command-1",0]'
    )
