"""Chats that are deleted while they are read, and forks of versions at which there is nothing to answer yet."""

from __future__ import annotations

import asyncio

import pytest

from chatstate.errors import ChatNotFound, NothingOwed
from store.contract import Store
from tests.races.gates import GatedStore
from tests.races.kit import CHAT, engine_on, settled, types_of


async def test_a_chat_that_is_deleted_while_it_is_forked_is_not_found(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi."]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        read = gated.hold("read_events", after=True)
        forking = asyncio.create_task(engine.fork(CHAT, chat_id="copy"))
        await read.arrived()
        await engine.delete(CHAT)
        read.open()
        with pytest.raises(ChatNotFound):
            await forking
        assert await types_of(any_base, "copy") == []


async def test_a_chat_that_is_deleted_while_its_news_are_read_is_not_found(any_base: Store) -> None:
    gated = GatedStore(any_base)
    async with engine_on(gated, ["Hi."]) as engine, engine_on(GatedStore(any_base), [], worker=False) as other:
        sent = await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        await other.set_title(CHAT, "A talk")
        reading = gated.hold("read_events")
        editing = asyncio.create_task(engine.edit_message(CHAT, sent.messages[0], "Good day"))
        await reading.arrived()
        await other.delete(CHAT)
        reading.open()
        with pytest.raises(ChatNotFound):
            await editing


async def test_a_fork_of_a_fork_before_its_messages_owes_nothing(any_base: Store) -> None:
    async with engine_on(any_base, ["Hi."]) as engine:
        await engine.create_chat("helper", "Hello", chat_id=CHAT)
        await settled(engine)
        await engine.fork(CHAT, at=1, chat_id="copy")
        assert (await engine.state("copy")).control.owed
        await engine.fork("copy", at=1, chat_id="empty")
        assert not (await engine.state("empty")).control.owed
        with pytest.raises(NothingOwed):
            await engine.resume("empty")
