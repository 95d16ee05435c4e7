"""The contract's promises on reading ranges of events and listing chats."""

import msgspec
import pytest

from events.ids import ChatId
from store.contract import Store
from store.errors import StoreUnavailable
from store.query import ChatQuery
from tests.store.making import CHAT, appending, of


class ReadContract:
    @pytest.mark.parametrize(
        ("after", "upto", "limit", "versions"),
        [
            (0, None, None, [1, 2, 3, 4, 5]),
            (2, None, None, [3, 4, 5]),
            (0, 3, None, [1, 2, 3]),
            (1, 4, 2, [2, 3]),
            (0, None, 0, []),
            (5, None, None, []),
            (3, 2, None, []),
            (0, 0, None, []),
            (0, 99, 99, [1, 2, 3, 4, 5]),
        ],
    )
    async def test_a_range_of_events(
        self, store: Store, after: int, upto: int | None, limit: int | None, versions: list[int]
    ) -> None:
        made = appending(0, *"abcde")
        await store.append(made)
        found = await store.read_events(CHAT, after=after, upto=upto, limit=limit)
        assert list(found) == [event for event in of(made) if event.envelope.version in versions]
        assert [event.envelope.version for event in found] == versions

    async def test_events_without_content(self, store: Store) -> None:
        made = appending(0, "a", "b")
        await store.append(made)
        found = await store.read_events(CHAT, after=1, content=False)
        assert list(found) == [msgspec.structs.replace(of(made)[1], content=b"")]

    async def test_a_chat_without_events(self, store: Store) -> None:
        assert not await store.read_events(ChatId("none"))

    async def test_time_goes_on(self, store: Store) -> None:
        await store.append(appending(0))
        before = await store.now()
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        # Microseconds of a year between 2020 and 2100.
        assert 1_577_836_800_000_000 < before <= loaded.now <= await store.now() < 4_102_444_800_000_000

    async def test_a_closed_store_says_so(self, store: Store) -> None:
        await store.__aexit__(None, None, None)
        with pytest.raises(StoreUnavailable, match="not open"):
            await store.load_header(CHAT)
        with pytest.raises(StoreUnavailable, match="not open"):
            await store.append(appending(0))

    async def test_the_last_exit_closes(self, store: Store) -> None:
        async with store, store:
            await store.append(appending(0))
        assert len(await store.read_events(CHAT)) == 1
        await store.__aexit__(None, None, None)
        with pytest.raises(StoreUnavailable, match="not open"):
            await store.read_events(CHAT)
        await store.__aexit__(None, None, None)  # once too often

    async def test_a_store_can_be_opened_again(self, store: Store) -> None:
        await store.append(appending(0))
        await store.__aexit__(None, None, None)
        async with store:
            assert len(await store.read_events(CHAT)) == 1


class ListContract:
    async def listed(self, store: Store, query: ChatQuery) -> list[str]:
        return [header.chat for header in await store.list_chats(query)]

    async def test_ids_come_in_pages_that_a_change_does_not_move(self, store: Store) -> None:
        for chat in ("b", "é", "a", "B"):
            await store.append(appending(0, chat=ChatId(chat)))
        first = await store.list_ids(limit=3)
        assert list(first) == ["B", "a", "b"]
        assert list(await store.list_ids(after=first[-1])) == ["é"]
        assert list(await store.list_ids(after=ChatId("é"))) == []
        assert list(await store.list_ids(limit=0)) == []

    async def test_newest_first_then_by_id(self, store: Store) -> None:
        for name, updated in (("b", 5), ("A", 5), ("a", 5), ("old", 1), ("new", 9), ("é", 5)):
            await store.append(appending(0, chat=ChatId(name), updated_at=updated))
        assert await self.listed(store, ChatQuery()) == ["new", "A", "a", "b", "é", "old"]
        headers = await store.list_chats(ChatQuery(limit=1))
        assert list(headers) == [appending(0, chat=ChatId("new"), updated_at=9).header]

    async def test_page_by_page_every_chat_is_seen_once(self, store: Store) -> None:
        names = [f"chat {n:02}" for n in range(23)]
        for n, name in enumerate(names):
            await store.append(appending(0, chat=ChatId(name), updated_at=n // 5))
        whole = await self.listed(store, ChatQuery())
        assert sorted(whole) == names
        pages: list[str] = []
        before: tuple[int, ChatId] | None = None
        while page := await store.list_chats(ChatQuery(limit=4, before=before)):
            assert len(page) <= 4
            pages += [header.chat for header in page]
            before = (page[-1].listed_at, page[-1].chat)
        assert pages == whole

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            (ChatQuery(owner="me"), ["a", "b"]),
            (ChatQuery(owner="ME"), []),
            (ChatQuery(agent="helper"), ["a", "c"]),
            (ChatQuery(owner="me", agent="helper"), ["a"]),
            (ChatQuery(statuses=("pending", "error")), ["a", "c"]),
            (ChatQuery(statuses=()), []),
            (ChatQuery(archived=True), ["b"]),
            (ChatQuery(archived=False), ["a", "c"]),
            (ChatQuery(labels={"k": "v"}), ["a", "b"]),
            (ChatQuery(labels={"k": "v", "x,": "y"}), ["b"]),
            (ChatQuery(labels={"x,": "z"}), []),
            (ChatQuery(labels={",": "y"}), []),
            (ChatQuery(labels={"nul": "a\x00b"}), ["c"]),
            (ChatQuery(labels={"nul": "a"}), []),
            (ChatQuery(limit=0), []),
        ],
    )
    async def test_what_matches(self, store: Store, query: ChatQuery, names: list[str]) -> None:
        a = appending(0, chat=ChatId("a"), owner="me", agent="helper", status="pending", labels={"k": "v"})
        b = appending(0, chat=ChatId("b"), owner="me", archived=True, labels={"k": "v", "x,": "y"})
        c = appending(0, chat=ChatId("c"), agent="helper", status="error", labels={"k": "w", "nul": "a\x00b"})
        for made in (a, b, c):
            await store.append(made)
        assert await self.listed(store, query) == names

    async def test_a_list_follows_appends(self, store: Store) -> None:
        await store.append(appending(0, owner="me"))
        await store.append(appending(1, owner="you", labels={"k": "v"}))
        assert await self.listed(store, ChatQuery(owner="me")) == []
        assert await self.listed(store, ChatQuery(owner="you", labels={"k": "v"})) == [CHAT]
