"""The contract's promises on blobs: each is kept as long as a chat uses it."""

import asyncio

import msgspec
import pytest

from events.ids import ChatId
from store.contract import Append, Appended, Conflict, Store
from tests.store.making import appending, events, header

X, Y = ChatId("x"), ChatId("y")
NAMES = ["shared", "x", "y"]


def letting_go(expected: int, chat: ChatId, *unused: str) -> Append:
    """An append after which no event of the chat refers to some blobs."""
    return msgspec.structs.replace(appending(expected, chat=chat), unused_blobs=frozenset(unused))


async def both(store: Store) -> None:
    """Two chats with a blob of their own each, and one that they share."""
    for chat in (X, Y):
        await store.append(appending(0, chat=chat, blobs={"shared": b"s", str(chat): b"own \x00\xff"}))


class BlobContract:
    async def test_what_a_chat_lets_go_is_kept_while_another_uses_it(self, store: Store) -> None:
        await both(store)
        assert await store.append(letting_go(1, X, "shared", "x", "none")) == Appended()
        assert await store.get_blobs(NAMES) == {"shared": b"s", "y": b"own \x00\xff"}
        assert await store.append(letting_go(1, Y, "shared")) == Appended()
        assert set(await store.get_blobs(NAMES)) == {"y"}

    async def test_an_append_that_is_refused_lets_nothing_go(self, store: Store) -> None:
        await both(store)
        assert await store.append(letting_go(4, X, "x")) == Conflict(1)
        assert len(await store.get_blobs(NAMES)) == 3

    async def test_blobs_go_with_the_last_chat_that_uses_them(self, store: Store) -> None:
        await both(store)
        await store.append(appending(1, chat=X, blobs={"shared": b"s"}))
        await store.delete(X, 2)
        assert set(await store.get_blobs(NAMES)) == {"shared", "y"}
        assert not await store.delete(Y, 9)
        await store.delete(Y, 1)
        assert await store.get_blobs(NAMES) == {}

    async def test_imported_blobs_are_used(self, store: Store) -> None:
        await both(store)
        imported = ChatId("imported")
        assert await store.import_chat(header(1, imported), events(1, "a"), {"shared": b"s", "new": b"n"})
        for chat in (X, Y):
            await store.delete(chat, 1)
        assert await store.collect_blobs() == 0
        assert await store.get_blobs(["shared", "new"]) == {"shared": b"s", "new": b"n"}

    async def test_a_blob_comes_back(self, store: Store) -> None:
        await both(store)
        await store.append(letting_go(1, X, "x"))
        await store.append(appending(2, chat=X, blobs={"x": b"own \x00\xff"}))
        assert "x" in await store.get_blobs(NAMES)
        await store.delete(X, 3)
        assert set(await store.get_blobs(NAMES)) == {"shared", "y"}

    async def test_nothing_in_use_is_collected(self, store: Store) -> None:
        await both(store)
        assert await store.collect_blobs() == 0
        assert len(await store.get_blobs(NAMES)) == 3

    @pytest.mark.parametrize("lets_go", ["delete", "append"])
    async def test_a_blob_that_is_let_go_and_taken_at_once_is_kept(
        self, store: Store, other: Store, lets_go: str
    ) -> None:
        for n in range(8):
            old, new, blob = ChatId(f"old {n}"), ChatId(f"new {n}"), f"blob {n}"
            await store.append(appending(0, chat=old, blobs={blob: b"b"}))
            gone = store.delete(old, 1) if lets_go == "delete" else store.append(letting_go(1, old, blob))
            await asyncio.gather(gone, other.append(appending(0, chat=new, blobs={blob: b"b"})), other.collect_blobs())
            assert await store.get_blobs([blob]) == {blob: b"b"}
