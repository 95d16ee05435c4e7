"""Databases of released schemas, with data in them, run forward: nothing is lost, and work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatfold.verification import verify_all
from events.codec import decode
from events.ids import ChatId
from generation.agents import Agent
from generation.providers.script import Say, Turn, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import tool
from store import open_store
from store.migrate import migrate
from store.schema import NEEDED, REVISIONS
from tests.golden.databases import RELEASED, make_database, rows_of

PATIENCE: Final = 30.0


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path, postgres_database: Callable[[], str]) -> str:
    return postgres_database() if request.param == "postgres" else f"sqlite:///{tmp_path}/released.db"


def test_every_released_schema_has_its_data() -> None:
    # The schema of this release gains its own when the next revision comes.
    assert sorted(RELEASED.values()) == [revision for revision in REVISIONS if revision != NEEDED]


@pytest.mark.parametrize("release", RELEASED)
async def test_nothing_is_lost_on_the_way(empty: str, release: str) -> None:
    make_database(empty, release)
    migrate(empty)
    before = list(rows_of(release))
    async with open_store(empty) as store:
        verdicts = [verdict async for verdict in verify_all(store)]
        assert {verdict.chat for verdict in verdicts} == {row["chat"] for table, row in before if table == "chats"}
        assert [finding for verdict in verdicts for finding in verdict.findings] == []
        for chat in {verdict.chat for verdict in verdicts}:
            stored = {event.envelope.version: event for event in await store.read_events(ChatId(chat))}
            told = {row["version"]: row for table, row in before if table == "chat_events" and row["chat"] == chat}
            assert stored.keys() == told.keys()
            for version, row in told.items():
                event = stored[version]
                assert (event.facts, event.content, event.digest) == (row["facts"], row["content"], row["digest"])
                decode(event, content=False)
        assert await store.tombstone(ChatId("gone")) is not None


@pytest.mark.parametrize("release", RELEASED)
async def test_the_feed_has_every_event_once(empty: str, release: str) -> None:
    make_database(empty, release)
    migrate(empty)
    told = sorted((row["chat"], row["version"]) for table, row in rows_of(release) if table == "chat_events")
    found: list[tuple[str, int]] = []
    async with open_store(empty) as store, asyncio.timeout(PATIENCE), store.subscribe() as feed:
        async for event in feed:
            found.append((event.chat, event.stored.envelope.version))
            if len(found) == len(told):
                break
    assert sorted(found) == told


@pytest.mark.parametrize("release", RELEASED)
async def test_blobs_stay_while_a_chat_uses_them(empty: str, release: str) -> None:
    make_database(empty, release)
    migrate(empty)
    blobs = [row["digest"] for table, row in rows_of(release) if table == "blobs"]
    async with Engine(empty, worker=False) as engine:
        assert await engine.store.collect_blobs() == 0
        users = [header.chat for header in await engine.list_chats() if await _reads(engine, header.chat, blobs[0])]
        assert len(users) == 2  # the chat and its fork
        await engine.delete(users[0])
        assert list(await engine.store.get_blobs(blobs)) == blobs
        await engine.delete(users[1])
        assert await engine.store.get_blobs(blobs) == {}


async def _reads(engine: Engine, chat: str, digest: str) -> bool:
    events = await engine.store.read_events(ChatId(chat))
    return any(digest.encode() in event.content for event in events)


@tool
async def hang(q: str) -> str:
    """Run for ever, in the release that was killed."""
    return q


@pytest.mark.parametrize("release", RELEASED)
async def test_work_goes_on(empty: str, release: str) -> None:
    make_database(empty, release)
    migrate(empty)
    answers: list[Turn] = [turn(Say("Back again."))] * 4
    agent = Agent(name="helper", model="scripted", tools=[hang])
    provider = {"scripted": ScriptedProvider(answers)}
    async with Engine(empty, agents=[agent], providers=provider, settings=Settings(poll=0.05)) as engine:
        async with asyncio.timeout(PATIENCE):
            held = await engine.settled("held")  # the dead holder's chat, and its queue after it
            await engine.send_message("plain", "Still here?")
            plain = await engine.settled("plain")
    assert (held.control.status, plain.control.status) == ("waiting", "waiting")
    assert held.control.takeovers == 0
    assert not held.control.queue
