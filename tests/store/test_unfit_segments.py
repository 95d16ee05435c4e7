"""A segment that is not what it should be costs time, never correctness: the log is folded instead."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable

import pytest
from msgspec.structs import replace

from chatfold.verification import verify_chat
from events.content import Content
from events.envelope import StoredEvent
from events.ids import ChatId
from events.messages import Message
from events.parts import TextPart
from events.reducer import fold
from store.building import build_segments
from store.contract import Segment
from store.loading import load_chat, read_recorded
from store.memory import MemoryStore
from store.segments import SCHEMA, _checksum, make_segment, newest_chain
from tests.chatstate.chat import trace
from tests.store.long_chats import long_chat, put
from tests.store.small_segments import small_segments

CHAT = ChatId("long")


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    """A chat with five segments or more, and a tail."""
    with small_segments(tail=10, cut=4000):
        async with MemoryStore() as store:
            words = iter(range(10_000))
            await put(store, long_chat(48, lambda: f"{next(words)} " * 40), CHAT)
            await build_segments(store, CHAT)
            assert len(await store.read_segments(CHAT)) >= 5
            yield store


async def change(store: MemoryStore, changed: Callable[[Segment], Segment], place: int) -> None:
    """Put another segment in the place of the one at ``place`` of the chain."""
    segments = list(await store.read_segments(CHAT))
    await store.drop_segments(CHAT)
    segments[place] = changed(segments[place])
    for segment in segments:
        assert await store.write_segment(segment)


async def assert_same(store: MemoryStore) -> None:
    loaded = await load_chat(store, CHAT, transcript=True)
    assert loaded is not None
    assert trace(loaded.state) == trace(fold(await read_recorded(store, CHAT)))


def flipped(segment: Segment, at: int) -> Segment:
    data = bytearray(segment.data)
    data[at] ^= 1
    return replace(segment, data=bytes(data))


def signed(segment: Segment) -> Segment:
    """Give a segment the checksum that belongs to it, as whoever means harm would."""
    return replace(segment, data=_checksum(segment, segment.data[16:]) + segment.data[16:])


CHANGES: dict[str, Callable[[Segment], Segment]] = {
    "checksum": lambda segment: flipped(segment, 0),
    "length": lambda segment: flipped(segment, 19),
    "head": lambda segment: flipped(segment, 40),
    "messages": lambda segment: flipped(segment, -8),
    "cut off": lambda segment: replace(segment, data=segment.data[:-5]),
    "empty": lambda segment: replace(segment, data=b""),
    "another log": lambda segment: signed(replace(segment, digest=bytes(32))),
    "another length": lambda segment: signed(flipped(segment, 19)),
    "another head": lambda segment: signed(flipped(segment, 40)),
}


@pytest.mark.parametrize("place", [0, 2, -1])
@pytest.mark.parametrize("changed", CHANGES)
async def test_a_changed_segment_is_ignored(
    store: MemoryStore, changed: str, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    await change(store, CHANGES[changed], place)
    with caplog.at_level(logging.WARNING):
        await assert_same(store)
    assert [record.message for record in caplog.records] == ["segments_ignored"]
    findings = (await verify_chat(store, CHAT)).findings
    assert {finding.check for finding in findings} == {"segment"}


async def test_verifying_finds_one_that_was_forged(store: MemoryStore) -> None:
    loaded = await load_chat(store, CHAT, transcript=True)
    assert loaded is not None
    *_, base, last = await store.read_segments(CHAT)
    forged = Message(role="assistant", parts=(TextPart(text=Content("I never said that.")),))
    state = fold(await read_recorded(store, CHAT, upto=last.last_version))
    messages = state.messages.before(len(state.messages) - 1).append(replace(state.messages[-1], message=forged))
    state = replace(state, transcript=replace(state.need_transcript("a test"), messages=messages))
    made = make_segment(CHAT, state, last.digest, base).segment
    await change(store, lambda _: made, -1)
    (finding,) = (await verify_chat(store, CHAT)).findings
    assert (finding.check, finding.version) == ("segment", last.last_version)
    assert finding.problem.endswith("its messages are not those that the log folds to")


@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
async def test_those_of_another_schema_are_not_looked_at(store: MemoryStore, schema: int) -> None:
    await change(store, lambda segment: replace(segment, schema=schema), 2)
    await assert_same(store)
    assert (await verify_chat(store, CHAT)).findings == ()
    assert len(newest_chain(await store.read_segments(CHAT), 2**31)) == 2


@pytest.mark.parametrize("name", ["start", "count", "first_version"])
async def test_those_that_lead_nowhere_are_left_out(store: MemoryStore, name: str) -> None:
    await change(store, lambda segment: replace(segment, **{name: getattr(segment, name) + 1}), 2)
    await assert_same(store)
    assert [finding.check for finding in (await verify_chat(store, CHAT)).findings] == ["segment"]


async def test_a_state_that_is_not_the_headers_is_ignored(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    loaded = await store.load_header(CHAT)
    assert loaded is not None
    assert await store.rebuild_header(
        replace(loaded.header, control=loaded.header.control.replace(b"helper", b"other"))
    )
    with caplog.at_level(logging.WARNING):
        await assert_same(store)
    assert [record.message for record in caplog.records] == ["segments_ignored"]


async def test_a_segment_of_a_log_that_was_changed_since_is_ignored(store: MemoryStore) -> None:
    last = (await store.read_segments(CHAT))[-1].last_version
    events: list[StoredEvent] = store._chats[CHAT].events
    events[last - 1] = replace(events[last - 1], digest=bytes(32))
    await assert_same(store)
    findings = (await verify_chat(store, CHAT)).findings
    assert (findings[0].check, findings[0].version) == ("digest", last)


async def test_building_replaces_what_cannot_be_used(store: MemoryStore) -> None:
    whole = list(await store.read_segments(CHAT))
    for place in (0, 2, -1):
        await change(store, CHANGES["messages"], place)
        assert await build_segments(store, CHAT) == 1
        assert await store.read_segments(CHAT) == whole
    await change(store, lambda segment: replace(segment, schema=0), 2)
    assert await build_segments(store, CHAT) == 1
    assert await store.read_segments(CHAT) == whole
