"""The contract's promises on what is made of the log: segments, and headers that are built anew."""

import asyncio

import msgspec
import pytest

from events.ids import ChatId
from store.contract import Append, Appended, Segment, Store
from store.rules import ERASES
from tests.store.contract_races import hint_at
from tests.store.making import CHAT, appending, header


def segment(first: int, last: int, data: bytes = b"data \x00\xff", chat: ChatId = CHAT) -> Segment:
    """A segment whose every field tells its versions."""
    return Segment(
        chat=chat,
        first_version=first,
        last_version=last,
        start=first - 1,
        count=last - first + 1,
        schema=3,
        digest=b"digest %d" % last,
        data=data,
    )


def erasing(expected: int) -> Append:
    """An append that says that contents were erased."""
    append = appending(expected)
    (new,) = append.events
    envelope = msgspec.structs.replace(new.stored.envelope, type=ERASES)
    stored = msgspec.structs.replace(new.stored, envelope=envelope)
    return msgspec.structs.replace(append, events=(msgspec.structs.replace(new, stored=stored),))


class SegmentContract:
    async def test_segments_come_back_as_they_were_written(self, store: Store) -> None:
        await store.append(appending(0, *"abcdef"))
        assert list(await store.read_segments(CHAT)) == []
        later, first = segment(3, 6), segment(1, 2, b"")
        assert await store.write_segment(later)
        assert await store.write_segment(first)
        assert list(await store.read_segments(CHAT)) == [first, later]
        bare = [msgspec.structs.replace(each, data=b"") for each in (first, later)]
        assert list(await store.read_segments(CHAT, data=False)) == bare
        assert list(await store.read_segments(ChatId("other"))) == []

    async def test_a_segment_is_written_once(self, store: Store) -> None:
        await store.append(appending(0, *"ab"))
        assert await store.write_segment(segment(1, 2, b"first"))
        assert await store.write_segment(segment(1, 2, b"second"))
        assert list(await store.read_segments(CHAT)) == [segment(1, 2, b"first")]

    async def test_a_segment_takes_the_place_of_others(self, store: Store) -> None:
        await store.append(appending(0, *"abcdef"))
        old = [segment(1, 2), segment(3, 4), segment(3, 5)]
        for each in old:
            await store.write_segment(each)
        assert await store.write_segment(segment(3, 6), replaces=[*old[1:], segment(1, 6)])
        assert list(await store.read_segments(CHAT)) == [old[0], segment(3, 6)]

    async def test_a_segment_needs_the_log_that_it_is_made_of(self, store: Store) -> None:
        assert not await store.write_segment(segment(1, 1))
        await store.append(appending(0))
        assert not await store.write_segment(segment(1, 2))
        assert list(await store.read_segments(CHAT)) == []

    async def test_what_was_made_before_an_erasure_is_refused(self, store: Store) -> None:
        await store.append(appending(0, *"abc"))
        assert await store.write_segment(segment(1, 2))
        await store.append(msgspec.structs.replace(erasing(3), erased={1: b"gone"}))
        assert list(await store.read_segments(CHAT)) == []
        old = segment(1, 3)
        assert not await store.write_segment(old, replaces=[old])
        assert list(await store.read_segments(CHAT)) == []
        assert await store.write_segment(segment(1, 4))
        await store.append(appending(4))
        assert await store.write_segment(segment(5, 5))
        assert not await store.write_segment(segment(1, 3))
        assert len(await store.read_segments(CHAT)) == 2

    @pytest.mark.parametrize("_", range(5))
    async def test_no_segment_outlives_an_erasure_beside_it(self, store: Store, other: Store, _: int) -> None:
        await store.append(appending(0, *"abc"))
        erase = msgspec.structs.replace(erasing(3), erased={1: b"gone"})
        result, *_written = await asyncio.gather(
            store.append(erase), *(other.write_segment(segment(1, last)) for last in (1, 2, 3))
        )
        assert result == Appended()
        assert list(await store.read_segments(CHAT)) == []

    async def test_all_segments_are_dropped(self, store: Store) -> None:
        mine, others = segment(1, 1), segment(1, 1, chat=ChatId("other"))
        for each in (mine, others):
            await store.append(appending(0, chat=each.chat))
            await store.write_segment(each)
        await store.drop_segments(CHAT)
        await store.drop_segments(ChatId("none"))
        assert list(await store.read_segments(CHAT)) == []
        assert list(await store.read_segments(ChatId("other"))) == [others]

    async def test_segments_go_with_the_chat(self, store: Store) -> None:
        await store.append(appending(0))
        await store.write_segment(segment(1, 1))
        await store.delete(CHAT, 1)
        assert list(await store.read_segments(CHAT)) == []

    async def test_an_append_leaves_segments_alone(self, store: Store) -> None:
        await store.append(appending(0))
        await store.write_segment(segment(1, 1))
        await store.append(appending(1))
        assert list(await store.read_segments(CHAT)) == [segment(1, 1)]


class RebuildContract:
    async def test_a_header_is_built_anew(self, store: Store) -> None:
        await store.append(appending(0, *"ab", title="wrong", status="error"))
        right = header(2, title="right", labels={"k": "v"}, attempt=3)
        async with store.hints() as hints:
            assert await store.rebuild_header(right)
            assert (await hint_at(hints, CHAT, 2)).version == 2
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert loaded.header == right
        assert await store.append(appending(2)) == Appended()

    async def test_a_header_is_built_for_the_end_of_the_log_alone(self, store: Store) -> None:
        await store.append(appending(0, *"ab", title="kept"))
        for version in (1, 3):
            assert not await store.rebuild_header(header(version))
        assert not await store.rebuild_header(header(2, ChatId("none")))
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert loaded.header == header(2, title="kept")
