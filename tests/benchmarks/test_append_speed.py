"""Appends to PostgreSQL as the engine makes them, beside what the driver can do in the same run. Printed.

No engine: a header and two or three events with about 1 kB of content, made beforehand but for what changes, written
by the store alone. The rest of a step's time is the engine's (``test_durable``).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from typing import Final

import pytest
from msgspec import Struct
from msgspec.structs import replace

from events.envelope import Envelope, StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from events.records import Actor
from store.contract import Append, Appended, Header, NewEvent
from store.postgres import PostgresStore
from store.postgres_group import batch_values
from tests.benchmarks.limits import RawGroup, RawStatement
from tests.benchmarks.work import STEPS, Contender, Texts, in_rounds, show
from tests.store.making import header

CHATS: Final = 64
STORE: Final = "chatfold's store"
ACTOR: Final = Actor(kind="worker", id="P7VU0UZ14TiAuInuoc9ugo")
_STARTED: Final = (
    b'{"attempt":1,"kind":"generate","decision":{"rule":"D11","action":"generate","facts":{"attempt":1},"passed":'
    b'["D0","D1","D2","D2b","D3","D4","D5","D6","D7","D7b","D8","D9","D10"],"policy":"P7VU0UZYewyHO9KvUuts2G"}}'
)
EVENTS: Final = (
    ("message_sent", b'{"added":[{"role":"user","parts":[{"kind":"text","text":[0,1000]}]}]}'),
    ("attempt_started", _STARTED),
    ("acquired", b'{"worker":"P7VU0UZ14TiAuInuoc9ugo","epoch":11,"release":"0.1.0"}'),
)
"""Types and facts of what a step appends."""

CONTROL: Final = (
    b'{"chat":"P7VU0UZ14TiAuInuoc9ugo","owner":"o1","agent":"a","release":"0.1.0","version":%d,"history_version":111,'
    b'"created_at":1795840744670424,"recorded_at":1795840771625782,"updated_at":1795840771625782,"epoch":11,"usage":'
    b'{"input":2200,"output":1100},"turns":11,"policy":"P7VU0UZYewyHO9KvUuts2G","indexes":{"messages":44,"turn_start":'
    b'"103.0","steps":2,"last_role":"assistant","visible_after":44,"assistants_after":22,"context_tokens":100}}'
)

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]


class Talk(Struct):
    """A chat that is written to."""

    header: Header
    command: int = 0


class StoreAppends:
    """The store as a contender."""

    name = STORE

    def __init__(self, url: str) -> None:
        self._store = PostgresStore(url)
        self._texts = Texts()
        self._numbers = itertools.count()

    async def open(self) -> None:
        await self._store.__aenter__()

    async def close(self) -> None:
        await self._store.__aexit__(None, None, None)

    async def new_chat(self) -> Talk:
        chat = ChatId(f"P7VU0UZ14TiAuInu{next(self._numbers):06}")
        talk = Talk(header(0, chat, holder=WorkerId("P7VU0UZYewyHO9KvUuts2G"), status="running"))
        assert await self._store.append(step(talk, self._texts(), 1)) == Appended()
        return talk

    async def turn(self, chat: Talk) -> None:
        for number in range(STEPS):
            assert await self._store.append(step(chat, self._texts(), 3 if number == 0 else 2)) == Appended()


def step(talk: Talk, text: str, count: int) -> Append:
    """Return the next append of a chat, and move the chat on."""
    before, version = talk.header, talk.header.version
    talk.command += 1
    events = []
    for index in range(count):
        kind, facts = EVENTS[index]
        envelope = Envelope(
            version=version + index + 1,
            type=kind,
            schema=1,
            recorded_at=1_795_840_744_670_424 + version,
            actor=ACTOR,
            source="running",
            dest="running",
            command=CommandId(f"P7VU0UZYewyHO9{talk.command:08}"),
            index=index,
        )
        content = b'["%s","%s"]' % (os.urandom(8).hex().encode(), text.encode()) if index == 0 else b""
        stored = StoredEvent(envelope=envelope, facts=facts, digest=os.urandom(32), content=content)
        events.append(NewEvent(stored=stored))
    version += count
    talk.header = replace(before, version=version, history_version=version, control=CONTROL % version)
    return Append(
        chat=before.chat,
        expected_version=before.version,
        header=talk.header,
        events=tuple(events),
        drop_partials=count == 2,
    )


async def test_many_chats_at_once(durable_database: Callable[[], str]) -> None:
    limit, statement = RawGroup(durable_database()), RawStatement(durable_database())
    contenders: list[Contender] = [limit, statement, StoreAppends(durable_database())]
    turns = {"": 20, statement.name: 10}
    found = await in_rounds(contenders, CHATS, turns)
    show(f"PostgreSQL, appends of {CHATS} chats at once", found.values(), "steps/s", found[limit.name])
    assert found[STORE].median >= 0.65 * found[limit.name].median


async def test_one_chat_alone(durable_database: Callable[[], str]) -> None:
    statement = RawStatement(durable_database())
    contenders: list[Contender] = [statement, StoreAppends(durable_database())]
    found = await in_rounds(contenders, 1, {"": 100})
    show("PostgreSQL, appends of one chat alone", found.values(), "steps/s", found[statement.name])
    assert found[STORE].median >= 0.8 * found[statement.name].median


def test_what_the_parameters_of_a_batch_cost() -> None:
    texts = Texts()
    batch = [step(Talk(header(7, ChatId(f"{n}"))), texts(), 2 + n % 2) for n in range(CHATS)]
    best = float("inf")
    for _ in range(20):
        start = time.process_time()
        batch_values(batch)
        best = min(best, time.process_time() - start)
    print(f"\nparameters of a batch: {best / CHATS * 1e6:.1f} us for each append")
    assert best / CHATS < 70e-6
