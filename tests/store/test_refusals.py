"""A refused transition changes nothing, appends nothing, announces nothing: every forbidden pair, on every back end.

Each state is reached once, by real commands through the journal; then all that is forbidden in it is tried, and all
rows of the database are compared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from itertools import groupby

import msgspec
import psycopg
import pytest
from psycopg import sql

from chatfold.testing.stores import WrappedStore
from chatstate import commands as c
from chatstate.classify import X, classify
from chatstate.errors import Refusal
from chatstate.table import TABLE, TRIGGERS
from events.codec import decode
from events.control import encode_control
from events.ids import ChatId, CommandId
from events.records import Actor
from events.reducer import fold
from store.append import CommandIdentity, Journal, PlanRun
from store.contract import Append, AppendResult, Hint, Store
from store.loading import load_chat
from store.memory import MemoryStore
from store.postgres import PostgresStore
from store.sqlite import SqliteStore
from store.urls import parse_sqlite
from tests.chatstate import build as b
from tests.chatstate.cases import Case, broken, forbidden
from tests.chatstate.chat import Timed

pytestmark = pytest.mark.odd_decisions("steps are begun by hand, under a policy that nobody recorded")

CHAT = ChatId("chat")
CASES: Mapping[X, list[Case]] = {
    state: list(cases) for state, cases in groupby(sorted(forbidden(), key=lambda case: case.state), lambda e: e.state)
}

Dump = Callable[[], Awaitable[object]]


class BreakingStore(WrappedStore):
    """Writes a header that must not be, as a store would that lost a part of a write. For a chat's first append."""

    async def append(self, append: Append) -> AppendResult:
        state = fold(decode(new.stored) for new in append.events)
        control = encode_control(broken(state).control)
        header = msgspec.structs.replace(append.header, archived=True, control=control)
        return await self.inner.append(msgspec.structs.replace(append, header=header))


def identity(command: str) -> CommandIdentity:
    return CommandIdentity(command=CommandId(command), actor=Actor(kind="user", id="ann"), fingerprint=b"print")


async def give(store: Store, timed: Timed, command: str, chat: ChatId = CHAT, *, transcript: bool = False) -> None:
    """Give one command through the journal."""

    def plan(run: PlanRun) -> None:
        run.do(timed.command)

    journal = Journal(store, lambda: bytes(16))
    await journal.execute(chat, plan, identity(command), transcript=transcript, now=lambda: timed.now)


async def announce(store: Store, number: int) -> ChatId:
    """Append to a chat that has nothing to do with the test, so that hints before its own are known to have come."""
    chat = ChatId(f"other {number}")
    create = c.CreateChat(chat=chat, owner="bob", agent="other", release="0.1.0", messages=(b.system(),))
    await give(store, Timed(create, 1), "c", chat)
    return chat


async def hints_until(hints: AsyncIterator[Hint], last: ChatId) -> list[ChatId]:
    """Return the chats that hints are of, up to one's."""
    seen: list[ChatId] = []
    while not seen or seen[-1] != last:
        seen.append((await anext(hints)).chat)
    return seen


async def reach(store: Store, cases: list[Case]) -> None:
    """Lead a chat of the store to the cases' state."""
    plan = cases[0].plan
    assert all(case.plan == plan for case in cases)
    writer = BreakingStore(store) if cases[0].state is X.INVALID else store
    for place, timed in enumerate(plan):
        await give(writer, timed, f"reach {place}", transcript=True)
    loaded = await load_chat(store, CHAT, transcript=False)
    assert (classify(loaded.state.control) if loaded is not None else X.N) is cases[0].state


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Store, Dump]]:
    """A store, and what gives all that is in it."""
    if request.param == "memory":
        memory = MemoryStore()
        async with memory:
            yield memory, lambda: _all_of_memory(memory)
    elif request.param == "sqlite":
        url = request.getfixturevalue("migrated_sqlite")
        async with SqliteStore(url) as store:
            yield store, lambda: _all_of_sqlite(url)
    else:
        url = request.getfixturevalue("migrated_database")
        async with PostgresStore(url) as store:
            yield store, lambda: _all_of_postgres(url)


async def _all_of_memory(store: MemoryStore) -> object:
    chats = {name: (kept.header, list(kept.events), dict(kept.commands)) for name, kept in store._chats.items()}
    return chats, dict(store._blobs), dict(store._tombstones), dict(store._leases)


async def _all_of_sqlite(url: str) -> object:
    connection = sqlite3.connect(parse_sqlite(url).path)
    try:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}
    finally:
        connection.close()


async def _all_of_postgres(url: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        query = sql.SQL("SELECT * FROM {} ORDER BY 1, 2")
        tables = [name for (name,) in found if name not in {"chatfold_version", "workers", "blobs"}]
        return {name: connection.execute(query.format(sql.Identifier(name))).fetchall() for name in tables}


def test_every_forbidden_pair_is_tried() -> None:
    pairs = {(x, t) for x, cells in TABLE.items() for t in TRIGGERS if t not in cells or not cells[t].usual}
    assert {(case.state, case.trigger) for cases in CASES.values() for case in cases} == pairs
    print(f"{len(pairs)} forbidden pairs in {len(CASES)} states")


@pytest.mark.parametrize("state", CASES)
async def test_a_refused_command_changes_appends_and_announces_nothing(place: tuple[Store, Dump], state: X) -> None:
    store, dump = place
    cases = CASES[state]
    async with store.hints() as hints:
        await reach(store, cases)
        await hints_until(hints, await announce(store, 1))
        header, events, rows = await store.load_header(CHAT), await store.read_events(CHAT), await dump()
        for case in cases:
            with pytest.raises(Refusal) as refused:
                await give(store, case.command, case.id)
            refusal = refused.value
            assert (type(refusal), refusal.trigger, refusal.state) == (case.expected, case.trigger, state)
            assert await store.find_command(CHAT, CommandId(case.id)) is None
        assert await dump() == rows
        after = await store.load_header(CHAT)
        assert (after and after.header) == (header and header.header)
        assert await store.read_events(CHAT) == events
        last = await announce(store, 2)
        assert await hints_until(hints, last) == [last]
