"""Verifying and repairing chats that are erased or deleted while they are looked at: that is no damage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from chatfold import Agent, Engine
from chatfold.repair import repair_chat
from chatfold.testing.stores import WrappedStore
from chatfold.verification import verify_chat
from chatstate.errors import ChatNotFound
from events.envelope import StoredEvent
from events.ids import ChatId
from store.contract import Store
from store.memory import MemoryStore

AGENT = Agent(name="helper", model="scripted")
LARGE = "A long text. " * 20_000


class Meanwhile(WrappedStore):
    """A store whose chat is changed once: behind the first page of its log, or before its large contents are read."""

    def __init__(self, inner: Store, engine: Engine, *, deletes: bool) -> None:
        super().__init__(inner)
        self._engine, self._deletes, self._done = engine, deletes, False

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        if self._deletes and not self._done:
            self._done = True
            page = await super().read_events(chat, after=after, upto=upto, limit=1, content=content)
            await self._engine.delete(chat)
            return page
        return await super().read_events(chat, after=after, upto=upto, limit=limit, content=content)

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        if digests and not self._deletes and not self._done:
            self._done = True
            await self._engine.erase("chat", ["1.0"])
        return await super().get_blobs(digests)


async def chat_in(engine: Engine) -> None:
    await engine.create_chat("helper", LARGE, chat_id="chat")
    state = await engine.settled("chat")
    assert state.messages[0].id == "1.0"


@pytest.mark.parametrize("look", [verify_chat, repair_chat])
async def test_a_deletion_meanwhile_is_no_damage(look: Callable[[Store, str], Awaitable[object]]) -> None:
    store = MemoryStore()
    async with Engine(store, [AGENT]) as engine:
        await chat_in(engine)
        with pytest.raises(ChatNotFound):
            await look(Meanwhile(store, engine, deletes=True), "chat")


async def test_an_erasure_meanwhile_is_no_finding() -> None:
    store = MemoryStore()
    async with Engine(store, [AGENT]) as engine:
        await chat_in(engine)
        verdict = await verify_chat(Meanwhile(store, engine, deletes=False), "chat")
        assert verdict.findings == ()
