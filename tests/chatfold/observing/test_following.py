"""Debug records go when another process edits, erases or deletes: at once, after a restart, and without a hint.

Each process is an engine with a store of its own here; that a hint crosses processes is the stores' contract.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path

import pytest

from chatfold import Agent, Engine, Settings
from chatfold.observing import DebugRecords, FolderSink
from chatfold.observing.following import Following
from chatfold.testing import ScriptedProvider
from events.ids import ChatId
from events.state import ChatState
from store import Store
from store.contract import Hint
from tests.chatfold.observing.kit import said
from tests.chatfold.observing.test_debug import record_of

HELPER = Agent(name="helper", model="scripted/any")
WORD = "what is to be gone"
Act = Callable[[Engine, str], Awaitable[object]]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_url"))
    database: Callable[[], str] = request.getfixturevalue("postgres_database")
    return database()


@pytest.fixture
def sink(tmp_path: Path) -> FolderSink:
    return FolderSink(tmp_path / "records")


@asynccontextmanager
async def running(url: str, sink: FolderSink) -> AsyncIterator[Engine]:
    """The process that runs chats, and keeps records."""
    providers = {"scripted": ScriptedProvider(lambda _request: "Done.")}
    records = DebugRecords(sink)
    async with Engine(url, [HELPER], providers=providers, settings=Settings(poll=0.05), observers=[records]) as engine:
        yield engine


def taking(url: str) -> Engine:
    """The process that takes commands, and has no records."""
    return Engine(url, worker=False, settings=Settings(poll=0.05))


async def erased(engine: Engine, chat: str) -> None:
    messages = (await engine.state(chat)).need_transcript("test").messages
    await engine.erase(chat, [item.id for item in messages])


async def deleted(engine: Engine, chat: str) -> None:
    await engine.delete(chat)


async def edited(engine: Engine, chat: str) -> ChatState:
    await engine.edit_message(chat, "1.0", "Something else.")
    return await engine.settled(chat)


async def until_gone(sink: FolderSink, chat: str, names: tuple[str, ...]) -> None:
    """Wait until a chat has none of these records; the test's own time limit ends the waiting."""
    while set(names) & set(sink.names(chat)):  # noqa: ASYNC110 - a thread deletes them, which has no event
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(("act", "left"), [(erased, 0), (deleted, 0), (edited, 1)])
async def test_what_another_process_does_reaches_the_records(url: str, sink: FolderSink, act: Act, left: int) -> None:
    async with running(url, sink) as worker, taking(url) as web:
        chat = await said(worker, WORD)
        other = await said(worker, "Stays.")
        before = sink.names(chat)
        assert len(before) == 1
        await act(web, chat)
        await until_gone(sink, chat, before)
    assert len(sink.names(chat)) == left
    assert all(WORD not in str(sink.record(chat, name).request) for name in sink.names(chat))
    assert len(sink.names(other)) == 1


@pytest.mark.parametrize(("act", "left"), [(erased, 0), (deleted, 0)])
async def test_what_was_done_while_no_process_kept_records(url: str, sink: FolderSink, act: Act, left: int) -> None:
    async with running(url, sink) as worker:
        chat = await said(worker, WORD)
        other = await said(worker, "Stays.")
    before = sink.names(chat)
    async with taking(url) as web:
        await act(web, chat)
    assert sink.names(chat) == before
    async with running(url, sink):
        await until_gone(sink, chat, before)
    assert len(sink.names(chat)) == left
    assert len(sink.names(other)) == 1


async def test_records_of_what_came_after_an_erasure_outlast_restarts(sqlite_url: str, sink: FolderSink) -> None:
    async with running(sqlite_url, sink) as worker, taking(sqlite_url) as web:
        chat = await said(worker, WORD)
        before = sink.names(chat)
        await erased(web, chat)
        await until_gone(sink, chat, before)
        await said(worker, "Again.", chat)
        gone = await said(worker, "To be deleted.")
        await web.delete(gone)
        await until_gone(sink, gone, sink.names(gone))
        (kept,) = sink.names(chat)
        listening = Listening()
        known = {**sink.chats(), gone: 1}  # in this order: what is said of the second comes after the first
        assert list(known) == [chat, gone]
        await listening.until_told(worker.store, known)
    assert listening.told == [(gone, None, None)]
    assert sink.names(chat) == (kept,)


async def test_records_of_another_store_are_left(url: str, sink: FolderSink) -> None:
    sink.begin(record_of("of-another-store"))
    async with running(url, sink) as worker, taking(url) as web:
        chat = await said(worker, WORD)
        await web.delete(chat)
        await until_gone(sink, chat, sink.names(chat))
    assert len(sink.names("of-another-store")) == 1


async def test_without_a_hint_the_next_look_finds_it(sqlite_url: str, sink: FolderSink) -> None:
    async with running(sqlite_url, sink) as worker:
        chat = await said(worker, WORD)
        listening = Listening(sweep=0.01)
        waiting = asyncio.create_task(listening.until_told(deaf(worker.store), {chat: 1}))
        await erased(worker, chat)
        version = (await worker.state(chat)).control.version
        await waiting
    assert listening.told == [(chat, None, version)]


class Listening:
    """Follows chats, and notes what it is told to forget."""

    def __init__(self, sweep: float = 300.0) -> None:
        self.told: list[tuple[str, int | None, int | None]] = []
        self._heard = asyncio.Event()
        self._following = Following(self._forget, sweep=sweep)

    def _forget(self, chat: str, since: int | None, before: int | None) -> bool:
        self.told.append((chat, since, before))
        self._heard.set()
        return True

    async def until_told(self, store: Store, chats: Mapping[str, int]) -> None:
        async def kept() -> Mapping[str, int]:
            return chats

        task = asyncio.create_task(self._following.run(store, kept))
        await self._heard.wait()
        task.cancel()
        await asyncio.wait({task})


def deaf(store: Store) -> Store:
    """The same store, without hints."""

    @asynccontextmanager
    async def hints(_chat: ChatId | None = None) -> AsyncIterator[AsyncIterator[Hint]]:
        async def none() -> AsyncIterator[Hint]:
            await asyncio.Event().wait()
            yield Hint(ChatId(""), 0, due=False)

        yield none()

    wrapped = copy(store)
    wrapped.hints = hints  # type: ignore[assignment]
    return wrapped
