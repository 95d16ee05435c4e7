"""Repair makes headers and segments anew from the log, says what it changed, and refuses where the log is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from chatfold import Agent, Engine, load_log
from chatfold.repair import LogDamaged, Repaired, RepairRefused, repair_all, repair_chat
from chatfold.sweep import count_chats
from chatfold.verification import verify_all, verify_chat
from chatstate.errors import ChatNotFound
from store import open_store
from store.building import build_segments
from store.contract import Header
from tests.chatfold.test_tampered import AGENT, HEADERS, change
from tests.store.small_segments import small_segments

CHATS: Final = ("a", "broken", "z")
SEGMENTS: Final = 2
"""Segments of each chat."""
COLUMNS: Final = (
    "owner = 'thief'",
    "agent = 'other'",
    "status = 'error'",
    "interrupting = 1",
    "archived = 1",
    "version = 99",
    "version = 3",
    "history_version = 1",
    "queue_version = 7",
    "epoch = 9",
    "holder = 'w'",
    "due_at = 5",
    "ready_at = 5",
    "created_at = 5",
    "updated_at = 5",
    "listed_at = 5",
    "attempt = 3",
    "title = 'No'",
    "title = NULL",
    'labels = \'{"x": "y"}\'',
    "parent = 'p'",
    "pinned = 1",
    "digest = zeroblob(32)",
    "control = (SELECT control FROM chats WHERE chat = 'a')",
)


@pytest.fixture(autouse=True)
def _small_segments() -> Iterator[None]:
    with small_segments(cut=1200):
        yield


@pytest.fixture
async def database(tmp_path: Path) -> Path:
    path = tmp_path / "chats.db"
    async with Engine(f"sqlite:///{path}", [AGENT]) as engine:
        for chat in CHATS:
            await engine.create_chat("a", "Hi.", chat_id=chat, title="Talk")
            await engine.settled(chat)
            await engine.send_message(chat, "And you?")
            await engine.settled(chat)
    async with open_store(f"sqlite:///{path}") as store:
        for chat in await store.list_ids():
            await store.drop_segments(chat)  # those that the worker had the time for
            assert await build_segments(store, chat) == SEGMENTS
    return path


def rows(database: Path) -> list[Any]:
    with sqlite3.connect(database) as connection:
        found = [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in ("chats", "segments")
        ]
    connection.close()
    return found


async def repaired(database: Path, chat: str = "broken") -> Repaired:
    async with open_store(f"sqlite:///{database}") as store:
        done = await repair_chat(store, chat)
        verdicts = [verdict async for verdict in verify_all(store)]
    assert [finding for verdict in verdicts for finding in verdict.findings] == []
    return done


async def test_what_is_sound_is_left_as_it_is(database: Path) -> None:
    before = rows(database)
    done = await repaired(database)
    assert not done.changed
    assert (done.header, done.dropped, done.built, done.unreadable, done.left) == ((), 0, 0, None, ())
    assert rows(database) == before


@pytest.mark.parametrize("assignment", COLUMNS)
async def test_a_wrong_column_is_made_right(database: Path, assignment: str) -> None:
    before = rows(database)
    change(database, f"UPDATE chats SET {assignment} WHERE chat = 'broken'")
    done = await repaired(database)
    assert done.header == (assignment.partition(" ")[0],)
    assert (done.dropped, done.built) == (0, 0)
    assert rows(database) == before


@pytest.mark.parametrize("assignment", HEADERS)
async def test_a_header_that_cannot_be_read_is_made_anew(database: Path, assignment: str) -> None:
    before = rows(database)
    change(database, f"UPDATE chats SET {assignment} WHERE chat = 'broken'")
    done = await repaired(database)
    assert done.changed
    assert done.unreadable is None or set(done.header) == set(Header.__struct_fields__)
    assert rows(database) == before


async def test_a_header_that_is_gone_is_told_and_made_anew(database: Path) -> None:
    before = rows(database)
    change(database, "DELETE FROM chats WHERE chat = 'broken'")
    async with open_store(f"sqlite:///{database}") as store:
        found = [finding for verdict in [v async for v in verify_all(store)] for finding in verdict.findings]
    assert [(finding.chat, finding.check) for finding in found] == [("broken", "header")]
    done = await repaired(database)
    assert done.unreadable is not None
    assert set(done.header) == set(Header.__struct_fields__)
    assert rows(database) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE segments SET data = x'00' WHERE chat = 'broken'",
        "UPDATE segments SET data = 'x' WHERE chat = 'broken'",
        "UPDATE segments SET digest = zeroblob(32) WHERE chat = 'broken'",
        "UPDATE segments SET count = 0 WHERE chat = 'broken'",
        "UPDATE segments SET start = 1 WHERE chat = 'broken'",
    ],
)
async def test_wrong_segments_are_made_anew(database: Path, statement: str) -> None:
    before = rows(database)
    change(database, statement)
    async with open_store(f"sqlite:///{database}") as store:
        assert {finding.check for finding in (await verify_chat(store, "broken")).findings} == {"segment"}
    done = await repaired(database)
    assert (done.header, done.dropped > 0, done.built) == ((), True, SEGMENTS)
    assert rows(database) == before


async def test_missing_segments_are_built(database: Path) -> None:
    change(database, "DELETE FROM segments WHERE chat = 'broken'")
    done = await repaired(database)
    assert (done.header, done.dropped, done.built) == ((), 0, SEGMENTS)


@pytest.mark.parametrize(
    ("statement", "version"),
    [
        ("content = CAST(replace(content, 'Hi', 'Ho') AS BLOB)", 1),
        ("facts = x'7b7d'", 4),
        ("content = 5", 4),
        ("digest = zeroblob(32)", 6),
        ("type = 'nonsense'", 2),
    ],
)
async def test_a_damaged_log_is_refused_and_named(database: Path, statement: str, version: int) -> None:
    change(database, f"UPDATE chat_events SET {statement} WHERE chat = 'broken' AND version = {version}")
    change(database, "UPDATE chats SET owner = 'thief' WHERE chat IN ('broken', 'z')")
    before = rows(database)[0]
    async with open_store(f"sqlite:///{database}") as store:
        with pytest.raises(LogDamaged, match=f"chat 'broken', version {version}: ") as caught:
            await repair_chat(store, "broken")
        assert (caught.value.chat, caught.value.version) == ("broken", version)
        done = [each async for each in repair_all(store)]
        assert await count_chats(store) == len(done)
    assert [each.chat for each in done] == list(CHATS)
    assert [type(each) for each in done] == [Repaired, RepairRefused, Repaired]
    assert [each.header for each in done if isinstance(each, Repaired)] == [(), ("owner",)]
    after = rows(database)[0]
    assert [row for row in after if row[0] == "broken"] == [row for row in before if row[0] == "broken"]


async def test_a_chat_that_is_not_there(database: Path) -> None:
    async with open_store(f"sqlite:///{database}") as store:
        with pytest.raises(ChatNotFound):
            await repair_chat(store, "nobody")


async def test_a_foreign_chat_stays_foreign_unless_that_is_lost(database: Path) -> None:
    url = f"sqlite:///{database}"
    async with Engine(url, worker=False) as engine:
        await engine.import_log(load_log(await engine.export_log("a")), as_id="there")
    change(database, "UPDATE chats SET owner = 'thief' WHERE chat = 'there'")
    async with open_store(url) as store:
        done = await repair_chat(store, "there")
        assert (done.header, done.foreign, done.unreadable) == (("owner",), True, None)
    change(database, "UPDATE chats SET owner = x'00' WHERE chat = 'there'")
    async with open_store(url) as store:
        done = await repair_chat(store, "there")
        assert done.unreadable == "column owner holds bytes, not str"
        assert not done.foreign  # it is at rest: nothing runs by itself


async def test_a_chat_that_owes_a_turn_is_foreign_where_it_is_not_known(database: Path) -> None:
    url = f"sqlite:///{database}"
    async with Engine(url, [AGENT], worker=False) as engine:
        await engine.send_message("broken", "Again?")
        await engine.import_log(load_log(await engine.export_log("broken")), as_id="there")
    change(database, "UPDATE chats SET owner = x'00' WHERE chat IN ('broken', 'there')")
    async with open_store(url) as store:
        assert not (await repair_chat(store, "broken")).foreign  # it went on here
        assert (await repair_chat(store, "there")).foreign
        assert [finding for each in [v async for v in verify_all(store)] for finding in each.findings] == []
    async with Engine(url, [Agent(name="a", model="scripted")]) as engine:
        await engine.adopt("there")
        for chat in ("broken", "there"):
            assert (await engine.settled(chat)).control.status == "waiting"
