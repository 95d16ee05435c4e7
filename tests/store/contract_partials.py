"""The contract's promises on pieces of answers that are not committed yet."""

import asyncio
from typing import Any

from msgspec.structs import replace

from events.ids import ChatId
from store.contract import Append, Appended, PartialChunk, Store
from tests.store.making import CHAT, WORKER, appending

OTHER = ChatId("other")


def running(expected: int, chat: ChatId = CHAT, attempt: int | None = 1, **changes: Any) -> Append:
    """An append after which an attempt is under way on history version 1."""
    given = {"status": "running", "holder": WORKER, "epoch": 1, "history_version": 1, **changes}
    return appending(expected, chat=chat, attempt=attempt, **given)


def chunk(n: int, chat: ChatId = CHAT, **changes: Any) -> PartialChunk:
    """A piece of the attempt of :func:`running`."""
    made = PartialChunk(chat=chat, epoch=1, history_version=1, attempt=1, n=n, data=b"piece \x00\xff %d" % n)
    return replace(made, **changes)


async def kept(store: Store, chat: ChatId = CHAT) -> list[tuple[int, int, int, bytes]]:
    return [(c.history_version, c.attempt, c.n, c.data) for c in await store.read_partials(chat)]


class PartialContract:
    async def test_pieces_of_attempts_under_way_are_kept_in_order_and_once(self, store: Store, other: Store) -> None:
        for chat in (CHAT, OTHER):
            await store.append(running(0, chat))
        assert await store.write_partials([]) == frozenset()
        assert await store.write_partials([chunk(1), chunk(0, OTHER), chunk(0)]) == {CHAT, OTHER}
        assert await other.write_partials([chunk(1, data=b"again"), chunk(2)]) == {CHAT}
        assert await other.read_partials(CHAT) == [chunk(0), chunk(1), chunk(2)]
        assert await store.read_partials(OTHER) == [chunk(0, OTHER)]
        assert await store.read_partials(ChatId("nobody")) == []

    async def test_pieces_of_anything_else_are_dropped(self, store: Store) -> None:
        await store.append(running(0))
        strangers = [
            chunk(0, epoch=2),
            chunk(0, history_version=2),
            chunk(0, attempt=2),
            chunk(0, ChatId("nobody")),
        ]
        for stranger in strangers:
            assert await store.write_partials([stranger]) == frozenset()
        assert await kept(store) == []

    async def test_the_append_that_ends_an_attempt_drops_its_pieces_and_later_ones_land_nowhere(
        self, store: Store, other: Store
    ) -> None:
        await store.append(running(0))
        await store.write_partials([chunk(0)])
        await store.append(running(1))
        assert len(await kept(store)) == 1
        assert await store.append(replace(running(2, attempt=2), drop_partials=True)) == Appended()
        assert await other.write_partials([chunk(1)]) == frozenset()
        assert await kept(store) == []

    async def test_an_append_that_loses_drops_nothing(self, store: Store) -> None:
        await store.append(running(0))
        await store.write_partials([chunk(0)])
        await store.append(replace(running(5, attempt=None), drop_partials=True))
        assert len(await kept(store)) == 1

    async def test_deleting_the_chat_deletes_them(self, store: Store) -> None:
        await store.append(running(0))
        await store.write_partials([chunk(0)])
        assert await store.delete(CHAT, 1)
        assert await kept(store) == []

    async def test_pieces_that_meet_the_end_of_their_attempt_are_not_taken_for_those_of_the_next(
        self, store: Store, other: Store
    ) -> None:
        await store.append(running(0))
        for attempt in range(1, 9):
            ended = replace(running(attempt, attempt=attempt + 1), drop_partials=True)
            outcome, *_ = await asyncio.gather(
                store.append(ended),
                *(other.write_partials([chunk(n, attempt=attempt)]) for n in range(4)),
            )
            assert outcome == Appended()
            assert await store.write_partials([chunk(9, attempt=attempt)]) == frozenset()
            assert all(at <= attempt for _, at, _, _ in await kept(store))
