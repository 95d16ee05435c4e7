"""The buffer of live parts, under a clock that the test turns."""

import asyncio
from collections.abc import Iterable

import msgspec
import pytest

from events.ids import CallKey, ChatId
from generation.errors import EpisodeExists, SubscriberTooSlow
from generation.parts import (
    EpisodeKey,
    LiveCall,
    LiveCallDelta,
    LivePart,
    LiveReasoning,
    LiveResult,
    LiveSource,
    LiveText,
    PartBuffer,
    SequencedPart,
    Subscription,
)

KEY = EpisodeKey(ChatId("chat"), 4, 1)
OTHER = EpisodeKey(ChatId("chat"), 4, 2)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def buffer(clock: Clock) -> PartBuffer:
    return PartBuffer(clock)


def text(word: str) -> LiveText:
    return LiveText(block=0, text=word)


def add(buffer: PartBuffer, *words: str, key: EpisodeKey = KEY) -> list[int | None]:
    return [buffer.add(key, text(word)) for word in words]


def words(parts: Iterable[SequencedPart]) -> list[tuple[int, str]]:
    return [(seq, part.text) for seq, part in parts if isinstance(part, LiveText)]


async def read(subscription: Subscription) -> list[tuple[int, str]]:
    return words([part async for part in subscription])


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_seq_begins_at_one_without_gaps(buffer: PartBuffer) -> None:
    buffer.create(KEY)
    buffer.create(OTHER)
    assert add(buffer, "a", "b") == [1, 2]
    assert add(buffer, "x", key=OTHER) == [1]
    assert add(buffer, "c") == [3]
    assert words(buffer.snapshot(KEY)) == [(1, "a"), (2, "b"), (3, "c")]


def test_create_twice_is_an_error(buffer: PartBuffer) -> None:
    buffer.create(KEY)
    with pytest.raises(EpisodeExists, match="attempt 1 on history 4 of chat chat"):
        buffer.create(KEY)


def test_an_unknown_or_closed_episode_takes_nothing(buffer: PartBuffer) -> None:
    assert add(buffer, "a") == [None]
    buffer.create(KEY)
    assert add(buffer, "a") == [1]
    buffer.close(KEY)
    assert add(buffer, "b") == [None]
    assert words(buffer.snapshot(KEY)) == [(1, "a")]
    assert buffer.snapshot(OTHER) == ()


async def test_closing_an_unknown_episode_keeps_it_from_beginning(buffer: PartBuffer) -> None:
    buffer.close(KEY)
    with pytest.raises(EpisodeExists):
        buffer.create(KEY)
    with buffer.subscribe(KEY) as late:
        assert await read(late) == []


async def test_close_again_changes_nothing(buffer: PartBuffer, clock: Clock) -> None:
    buffer.create(KEY)
    buffer.close(KEY)
    clock.now += 14
    buffer.close(KEY)
    clock.now += 1
    buffer.collect()
    assert len(buffer) == 0


def test_capacity_ends_the_preview(clock: Clock) -> None:
    size = len(msgspec.json.encode(text("aaaa")))
    buffer = PartBuffer(clock, capacity=2 * size)
    buffer.create(KEY)
    assert add(buffer, "aaaa", "bbb", "cccc", "", "x") == [1, 2, None, None, None]
    assert buffer.truncated(KEY)
    assert not buffer.truncated(OTHER)
    assert words(buffer.snapshot(KEY)) == [(1, "aaaa"), (2, "bbb")]


async def test_a_full_episode_still_ends_for_its_subscribers(clock: Clock) -> None:
    buffer = PartBuffer(clock, capacity=0)
    buffer.create(KEY)
    with buffer.subscribe(KEY) as subscription:
        assert add(buffer, "a") == [None]
        buffer.close(KEY)
        assert await read(subscription) == []


async def test_subscribers_get_what_was_and_what_comes(buffer: PartBuffer) -> None:
    buffer.create(KEY)
    add(buffer, "a", "b")
    with buffer.subscribe(KEY) as whole, buffer.subscribe(KEY, after=1) as rest:
        readers = [asyncio.ensure_future(read(subscription)) for subscription in (whole, rest)]
        await settle()
        add(buffer, "c")
        await settle()
        assert not any(reader.done() for reader in readers)
        buffer.close(KEY)
        assert await readers[0] == [(1, "a"), (2, "b"), (3, "c")]
        assert await readers[1] == [(2, "b"), (3, "c")]


async def test_subscribing_before_creation_waits(buffer: PartBuffer) -> None:
    with buffer.subscribe(KEY) as early:
        reader = asyncio.ensure_future(read(early))
        await settle()
        assert not reader.done()
        buffer.create(KEY)
        add(buffer, "a")
        buffer.close(KEY)
        assert await reader == [(1, "a")]


async def test_waiting_for_what_never_comes_leaves_nothing(buffer: PartBuffer) -> None:
    with buffer.subscribe(KEY), buffer.subscribe(KEY):
        assert len(buffer) == 1
    assert len(buffer) == 0


async def test_closed_episodes_are_collected_without_subscribers(buffer: PartBuffer, clock: Clock) -> None:
    buffer.create(KEY)
    with buffer.subscribe(KEY):
        buffer.close(KEY)
        clock.now += 60
        buffer.collect()
        assert len(buffer) == 1
    clock.now += 1
    buffer.create(OTHER)  # collects, too
    assert len(buffer) == 1
    assert buffer.snapshot(KEY) == ()
    buffer.create(KEY)


async def test_open_episodes_are_kept(buffer: PartBuffer, clock: Clock) -> None:
    buffer.create(KEY)
    clock.now += 10_000
    buffer.collect()
    assert add(buffer, "a") == [1]


async def test_a_slow_subscriber_is_dropped(buffer: PartBuffer, clock: Clock) -> None:
    buffer.create(KEY)
    with buffer.subscribe(KEY) as slow, buffer.subscribe(KEY) as quick:
        add(buffer, "a")
        assert (await anext(aiter(quick))).seq == 1
        clock.now += 10
        add(buffer, "b")
        assert (await anext(aiter(slow))).seq == 1  # just in time; the next has 10 s again
        clock.now += 10.5
        add(buffer, "c")
        with pytest.raises(SubscriberTooSlow, match="chat chat"):
            await anext(aiter(slow))
    with pytest.raises(SubscriberTooSlow):
        await anext(aiter(quick))


async def test_who_waits_for_parts_is_not_slow(buffer: PartBuffer, clock: Clock) -> None:
    buffer.create(KEY)
    with buffer.subscribe(KEY) as patient:
        reader = asyncio.ensure_future(read(patient))
        await settle()
        clock.now += 3600
        buffer.collect()
        add(buffer, "a")
        await settle()
        clock.now += 3600
        add(buffer, "b")
        await settle()
        buffer.close(KEY)
        assert await reader == [(1, "a"), (2, "b")]


async def test_a_slow_subscriber_does_not_keep_a_closed_episode(buffer: PartBuffer, clock: Clock) -> None:
    buffer.create(KEY)
    add(buffer, "a")
    with buffer.subscribe(KEY) as slow:
        buffer.close(KEY)
        clock.now += 15
        buffer.collect()
        assert len(buffer) == 0
        with pytest.raises(SubscriberTooSlow):
            await anext(aiter(slow))


async def test_cancelling_a_reader_loses_no_part(buffer: PartBuffer) -> None:
    buffer.create(KEY)
    with buffer.subscribe(KEY) as subscription:
        reader = asyncio.ensure_future(anext(aiter(subscription)))
        await settle()
        reader.cancel()
        await settle()
        add(buffer, "a")
        assert (await anext(aiter(subscription))).seq == 1


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (LiveText(block=0, text="a"), "text"),
        (LiveReasoning(block=0, text="a"), "reasoning"),
        (LiveCallDelta(block=1, text='{"a', name="add"), "call_delta"),
        (LiveCall(block=1, name="add", arguments="{}"), "call"),
        (LiveResult(name="add", output={"a": 1}, call=CallKey("1.0.0")), "result"),
        (LiveSource(block=2, source_id="s", url="https://example.org"), "source"),
    ],
)
def test_parts_have_a_json_form(part: LivePart, kind: str) -> None:
    form = msgspec.json.decode(msgspec.json.encode(part))
    given = {name: getattr(part, name) for name in part.__struct_fields__}
    assert form.pop("kind") == kind
    assert form == {name: value for name, value in given.items() if name in form or value}
