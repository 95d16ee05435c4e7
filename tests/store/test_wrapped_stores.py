"""The wrapping stores of the test kit keep the contract, count, and lose replies."""

from collections.abc import AsyncIterator

import pytest

from chatfold.testing.stores import CallName, CountedCall, CountingStore, LosingStore
from events.ids import ChatId, CommandId
from store.contract import Appended, CommandRecord, Conflict, Store
from store.errors import OutcomeUnknown
from store.memory import MemoryStore
from tests.store.contract import StoreContract
from tests.store.making import CHAT, appending


class TestWrapped(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        async with CountingStore(LosingStore(MemoryStore())) as store:
            yield store

    @pytest.fixture
    def other(self, store: Store) -> Store:
        return store


async def test_calls_are_counted() -> None:
    async with CountingStore(MemoryStore()) as store:
        await store.append(appending(0, "a", "a", "b"))
        await store.append(appending(7, "c", chat=ChatId("other")))
        await store.load_header(CHAT)
        assert store.calls == [
            CountedCall("append", CHAT, (CommandId("a"), CommandId("b")), ("message_sent",) * 3),
            CountedCall("append", ChatId("other"), (CommandId("c"),), ("message_sent",)),
            CountedCall("load_header", CHAT),
        ]
        assert (store.count("append"), store.count("append", CHAT), store.count("now")) == (2, 1, 0)
        assert store.counts() == {"append": 2, "load_header": 1}
        store.forget()
        assert store.calls == []


@pytest.mark.parametrize("name", ["append", "any"])
async def test_a_lost_append_took_effect(name: CallName) -> None:
    async with LosingStore(MemoryStore()) as store:
        store.lose(name)
        with pytest.raises(OutcomeUnknown, match="append was lost"):
            await store.append(appending(0, "a"))
        assert store.lost == 1
        assert await store.find_command(CHAT, CommandId("a")) == CommandRecord(1, 1, b"print")
        assert await store.append(appending(1, "b")) == Appended()
        assert await store.append(appending(1, "c")) == Conflict(2)


async def test_only_the_named_call_is_lost() -> None:
    async with LosingStore(MemoryStore()) as store:
        store.lose("append", times=2)
        assert await store.load_header(CHAT) is None
        for version in range(2):
            with pytest.raises(OutcomeUnknown):
                await store.append(appending(version))
        assert await store.append(appending(2)) == Appended()
