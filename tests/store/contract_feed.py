"""The contract's promises on the feed of all chats' events."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator

import anyio
import pytest

from events.ids import ChatId
from store.contract import FEED_START, FeedEvent, FeedPosition, Store
from store.errors import FeedMoved
from tests.store.making import CHAT, appending, events, header, of, stored

Place = tuple[str, int]


def places(found: list[FeedEvent]) -> list[Place]:
    """The chat and version of each event."""
    return [(event.chat, event.stored.envelope.version) for event in found]


async def whole(store: Store, after: FeedPosition = FEED_START, limit: int = 1000) -> list[FeedEvent]:
    """All events behind a position, page by page, once nobody's transaction holds them back any more."""
    await store.feed_end()
    found: list[FeedEvent] = []
    while page := await store.read_feed(after=after, limit=limit):
        found += page
        after = page[-1].position
    return found


async def take(feed: AsyncIterator[FeedEvent], count: int) -> list[FeedEvent]:
    """The next events of a subscription."""
    with anyio.fail_after(20):
        return [await anext(feed) for _ in range(count)]


class FeedContract:
    async def test_the_feed_of_nothing(self, store: Store) -> None:
        assert list(await store.read_feed(after=FEED_START, limit=10)) == []
        assert list(await store.read_feed(after=await store.feed_end(), limit=10)) == []

    async def test_a_position_that_is_ahead_of_the_database_is_told(self, store: Store) -> None:
        """The consumer kept it with what it made of events that a restored copy does not have."""
        await store.append(appending(0, "a", chat=ChatId("x")))
        end = await store.feed_end()
        assert list(await store.read_feed(after=end, limit=10)) == []
        with pytest.raises(FeedMoved, match="ahead"):
            await store.read_feed(after=FeedPosition(end.tx + 100_000, 2**62), limit=10)
        await store.delete(ChatId("x"), 1)
        assert list(await store.read_feed(after=end, limit=10)) == []

    async def test_events_come_in_the_order_of_their_commits(self, store: Store, other: Store) -> None:
        x, y = ChatId("x"), ChatId("y")
        appends = [
            appending(0, *"aab", chat=x),
            appending(0, "a", chat=y),
            appending(3, *"cdd", chat=x),
            appending(1, *"efgh", chat=y),
        ]
        for append, writer in zip(appends, [store, other, other, store], strict=True):
            await writer.append(append)
        found = await whole(store)
        assert [event.stored for event in found] == of(*appends)
        assert places(found) == [(append.chat, n.stored.envelope.version) for append in appends for n in append.events]
        positions = [event.position for event in found]
        assert positions == sorted(set(positions))
        assert positions[0] > FEED_START

    @pytest.mark.parametrize("limit", [1, 2, 3, 1000])
    async def test_the_feed_goes_on_behind_any_event(self, store: Store, limit: int) -> None:
        for number in range(3):
            await store.append(appending(0, *"aab", chat=ChatId(f"{number}")))
            await store.append(appending(3, *"cdd", chat=ChatId(f"{number}")))
        await store.import_chat(header(6, CHAT), events(1, *"uuvvww"), {})
        found = await whole(store)
        assert len(found) == 24
        for place, event in enumerate(found):
            assert await whole(store, event.position, limit) == found[place + 1 :]

    async def test_a_page_is_about_as_long_as_asked(self, store: Store) -> None:
        for number in range(20):
            await store.append(appending(0, chat=ChatId(f"{number:02}")))
        await store.feed_end()
        assert len(await store.read_feed(after=FEED_START, limit=5)) in {5, 6}
        assert list(await store.read_feed(after=FEED_START, limit=0)) == []

    async def test_the_end_is_behind_all_that_is_there(self, store: Store, other: Store) -> None:
        await store.append(appending(0, *"ab"))
        end = await other.feed_end()
        assert await whole(store, end) == []
        assert (await whole(store))[-1].position <= end
        await other.append(appending(2, *"cd"))
        assert places(await whole(store, end)) == [(CHAT, 3), (CHAT, 4)]

    async def test_deleted_chats_leave_the_feed(self, store: Store) -> None:
        for name in "xyz":
            await store.append(appending(0, *"ab", chat=ChatId(name)))
        before = await whole(store)
        await store.delete(ChatId("y"), 2)
        assert places(await whole(store)) == [("x", 1), ("x", 2), ("z", 1), ("z", 2)]
        assert places(await whole(store, before[2].position)) == [("z", 1), ("z", 2)]

    async def test_erased_contents_are_gone_from_the_feed(self, store: Store) -> None:
        await store.append(appending(0, *"ab"))
        await store.append(appending(2, erased={1: b"gone"}))
        assert [event.stored.content for event in await whole(store)] == [
            b"gone",
            *(stored(n, "").content for n in (2, 3)),
        ]


class SubscribeContract:
    async def test_a_subscription_tells_what_was_and_what_comes(self, store: Store, other: Store) -> None:
        await store.append(appending(0, *"ab"))
        async with store.subscribe() as feed:
            assert places(await take(feed, 2)) == [(CHAT, 1), (CHAT, 2)]
            await other.append(appending(2))
            assert places(await take(feed, 1)) == [(CHAT, 3)]
            await store.append(appending(3))
            assert places(await take(feed, 1)) == [(CHAT, 4)]

    async def test_a_subscription_from_a_position(self, store: Store) -> None:
        await store.append(appending(0, *"aab"))
        async with store.subscribe() as feed:
            first, _ = await take(feed, 2)
        async with store.subscribe(after=first.position) as feed:
            assert places(await take(feed, 2)) == [(CHAT, 2), (CHAT, 3)]
        async with store.subscribe(after=await store.feed_end()) as feed:
            await store.append(appending(3))
            assert places(await take(feed, 1)) == [(CHAT, 4)]

    async def test_each_consumer_sees_each_event_once_while_many_write(self, store: Store, other: Store) -> None:
        rng = random.Random(7)
        chats, versions = 8, 12

        async def write(number: int) -> None:
            version = 0
            while version < versions:
                commands = [f"{version} {n}" for n in range(min(rng.randrange(1, 4), versions - version))]
                await (store, other)[number % 2].append(appending(version, *commands, chat=ChatId(f"{number}")))
                version += len(commands)

        async def consume(rest: int) -> list[FeedEvent]:
            seen: list[FeedEvent] = []
            while rest:
                # Restarted from the position of the last event that it took.
                after = seen[-1].position if seen else FEED_START
                async with (store, other)[rest % 2].subscribe(after=after) as feed:
                    seen += await take(feed, count := min(rng.randrange(1, 30), rest))
                rest -= count
            return seen

        consumers = [asyncio.create_task(consume(chats * versions)) for _ in range(3)]
        await asyncio.gather(*(write(number) for number in range(chats)))
        feeds = await asyncio.gather(*consumers)
        assert feeds[0] == feeds[1] == feeds[2] == await whole(store)
        by_chat = defaultdict[str, list[int]](list)
        for chat, version in places(feeds[0]):
            by_chat[chat].append(version)
        assert by_chat == {f"{number}": list(range(1, versions + 1)) for number in range(chats)}
