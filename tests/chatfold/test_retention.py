"""Chats whose retention has run out are found on each store, and deleted by who asks; others are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chatfold import ChatQuery, Engine, InvalidValue
from chatfold import retention as module
from events.control import encode_control, retention_of
from events.errors import MalformedEvent
from events.state import initial_state
from store.memory import MemoryStore
from tests.races.kit import ManualClock

DAY = 86_400.0


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "memory":
        return "memory://"
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_url"))
    database: Callable[[], str] = request.getfixturevalue("postgres_database")
    return database()


async def put(engine: Engine, seconds: float | None, owner: str = "ann") -> str:
    chat = (await engine.create_chat("helper", owner=owner)).chat
    if seconds is not None:
        await engine.set_retention(chat, seconds)
    return chat


async def found(engine: Engine, query: ChatQuery | None = None) -> set[str]:
    return {header.chat async for header in engine.expired_chats(query)}


async def test_a_purge(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    async with Engine(url, worker=False) as engine:
        over = [await put(engine, 0.0) for _ in range(5)]
        of_bob = await put(engine, 0.0, "bob")
        kept = [await put(engine, DAY), await put(engine, None)]
        lifted = await put(engine, 0.0)
        await engine.set_retention(lifted, None)
        busy = await put(engine, 0.0)
        await engine.send_message(busy, "Hi.")
        archived = await put(engine, 0.0)
        await engine.archive(archived)
        assert await found(engine) == {*over, of_bob, archived}
        assert await found(engine, ChatQuery(owner="bob", limit=1)) == {of_bob}
        async for header in engine.expired_chats():
            await engine.delete(header.chat)
        assert {header.chat for header in await engine.list_chats()} == {*kept, lifted, busy}
        assert await found(engine) == set()


async def test_the_time_counts_from_the_last_change_of_the_chat() -> None:
    clock = ManualClock()
    async with Engine(MemoryStore(clock=clock), worker=False) as engine:
        chat = await put(engine, DAY)
        (header,) = await engine.list_chats()
        assert header.expires_at == header.updated_at + DAY * 1e6
        clock.advance(DAY - 1)
        await engine.set_title(chat, "Looked at again")
        clock.advance(DAY - 1)
        assert await found(engine) == set()
        clock.advance(1)
        assert await found(engine) == {chat}


async def test_what_was_changed_since_its_page_was_read_is_kept() -> None:
    clock = ManualClock()
    async with Engine(MemoryStore(clock=clock), worker=False) as engine:
        first, second = await put(engine, DAY), await put(engine, DAY)
        clock.advance(DAY)
        chats = []
        async for header in engine.expired_chats():
            chats.append(header.chat)
            await engine.set_title(second if header.chat == first else first, "Just now")
        assert len(chats) == 1


async def test_what_is_no_query_is_refused() -> None:
    async with Engine("memory://", worker=False) as engine:
        with pytest.raises(InvalidValue, match="a ChatQuery"):
            await found(engine, "ann")  # type: ignore[arg-type]


def test_retention_is_read_of_the_control_alone() -> None:
    control = initial_state().control
    assert retention_of(encode_control(control)) is None
    control.retention_us = 5
    assert retention_of(encode_control(control)) == 5
    with pytest.raises(MalformedEvent):
        retention_of(b'{"retention_us":"long"}')
