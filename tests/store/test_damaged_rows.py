"""Rows that somebody else changed: whoever reads one is told which by a typed error, and no row keeps others waiting.

SQLite lets every type into every column; PostgreSQL's columns keep theirs, but not what is written in them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any, Final

import psycopg
import pytest

from events.ids import ChatId, CommandId, WorkerId
from store.contract import FEED_START, Append, PartialChunk, Segment
from store.errors import FeedEventUnreadable, MalformedRow
from store.notes import RefusalNote, WorkerNote
from store.postgres import PostgresStore
from store.query import ChatQuery
from store.sqlite import SqliteStore
from store.urls import parse_sqlite
from tests.store.contract_feed import places, whole
from tests.store.making import CHAT, appending

GONE: Final = ChatId("gone")
DEAD, ALIVE = WorkerId("dead"), WorkerId("alive")
LEASE: Final = 60_000_000
FOR_NOW: Final[dict[str, Any]] = {"status": "running", "holder": DEAD, "attempt": 1, "history_version": 1}


async def filled(store: SqliteStore | PostgresStore) -> None:
    """Chats of two appends each with all that stands beside a log, a deleted chat, and two workers."""
    for worker in (DEAD, ALIVE):
        await store.heartbeat(worker, LEASE, start=True, note=WorkerNote(agents=("agent",)))
    await store.append(appending(0, *"aab", chat=CHAT, labels={"k": "v"}))
    await store.append(appending(0, "a", chat=GONE))
    await store.delete(GONE, 1)
    await store.append(appending(3, *"cc", chat=CHAT, labels={"k": "v"}, **FOR_NOW))
    await store.append(appending(0, "a", chat=ChatId("other"), status="pending"))
    await store.write_partials([PartialChunk(chat=CHAT, epoch=0, history_version=1, attempt=1, n=0, data=b"x")])
    await store.note_refusals([RefusalNote(chat=CHAT, at=1, trigger="t", code="c", state="W", reason="r", actor="a")])
    await store.write_segment(
        Segment(chat=CHAT, first_version=1, last_version=2, start=0, count=1, schema=1, digest=b"d", data=b"s")
    )


def change(url: str, statement: str) -> None:
    connection = sqlite3.connect(parse_sqlite(url).path)
    with connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


async def _find(store: SqliteStore) -> Any:
    return await store.find_command(CHAT, CommandId("c"))


async def _delete(store: SqliteStore) -> Any:
    return await store.delete(CHAT, 5)


def _append(append: Append) -> Callable[[SqliteStore], Awaitable[Any]]:
    return lambda store: store.append(append)


_READS: Final[dict[str, tuple[str, Callable[[SqliteStore], Awaitable[Any]], str, str, str | None]]] = {
    # statement, call, table, column, chat
    "position of a tombstone": (
        "UPDATE tombstones SET position = 'x'", _append(appending(5, "d")), "tombstones", "position", GONE
    ),
    "version of a tombstone": (
        "UPDATE tombstones SET version = 'x'", _append(appending(0, "d", chat=GONE)), "tombstones", "version", GONE
    ),
    "digest of a tombstone": (
        "UPDATE tombstones SET digest = 'x'", lambda s: s.tombstone(GONE), "tombstones", "digest", GONE
    ),
    "a tombstone's digest that is a number": (
        "UPDATE tombstones SET digest = 5", lambda s: s.tombstone(GONE), "tombstones", "digest", GONE
    ),
    "a tombstone's digest that is no text": (
        "UPDATE tombstones SET digest = CAST(x'ff' AS TEXT)", lambda s: s.tombstone(GONE), "tombstones", "", GONE
    ),
    "a tombstone that deleting meets": (
        "UPDATE tombstones SET position = x'00'", _delete, "tombstones", "position", GONE
    ),
    "the write level": (
        "UPDATE schema_levels SET write_level = 'x'", lambda s: s.raise_write_level(2), "schema_levels", "write_level",
        None,
    ),
    "the oldest revision": (
        "UPDATE schema_levels SET oldest = x'00'", lambda s: s.raise_write_level(2), "schema_levels", "oldest", None
    ),
    "no levels": ("DELETE FROM schema_levels", lambda s: s.raise_write_level(2), "schema_levels", "", None),
    "tx of the last event": (
        "UPDATE chat_events SET tx = 'x' WHERE chat = 'chat' AND version = 4", _append(appending(5, "d")),
        "chat_events", "tx", CHAT,
    ),
    "position of the last event": (
        "UPDATE chat_events SET position = 'x' WHERE chat = 'other'", lambda s: s.feed_end(), "chat_events",
        "position", "other",
    ),
    "version of an event": (
        "UPDATE chat_events SET version = 'x' WHERE chat = 'chat' AND version = 4", _find, "chat_events", "version",
        CHAT,
    ),
    "version of a command's end": (
        "UPDATE chat_events SET version = 'x' WHERE chat = 'chat' AND version = 5", _find, "chat_events", "version",
        CHAT,
    ),
    "fingerprint": (
        "UPDATE chat_events SET fingerprint = 'x' WHERE chat = 'chat'", _find, "chat_events", "fingerprint", CHAT
    ),
    "fingerprint of a repeated command": (
        "UPDATE chat_events SET fingerprint = 5 WHERE chat = 'chat'", _append(appending(5, "c")), "chat_events",
        "fingerprint", CHAT,
    ),
    "a type that is no text": (
        "UPDATE chat_events SET type = CAST(x'ff' AS TEXT) WHERE chat = 'chat'", lambda s: s.read_events(CHAT),
        "chat_events", "", CHAT,
    ),
    "version that an append meets": (
        "UPDATE chats SET version = 'x' WHERE chat = 'chat'", _append(appending(5, "d")), "chats", "version", CHAT
    ),
    "digest that deleting keeps": (
        "UPDATE chats SET digest = 'x' WHERE chat = 'chat'", _delete, "chats", "digest", CHAT
    ),
    "data of a partial": (
        "UPDATE chat_partials SET data = 'x'", lambda s: s.read_partials(CHAT), "chat_partials", "data", CHAT
    ),
    "number of a partial": (
        "UPDATE chat_partials SET n = 'x'", lambda s: s.read_partials(CHAT), "chat_partials", "n", CHAT
    ),
    "attempt of a partial": (
        "UPDATE chat_partials SET attempt = x'00'", lambda s: s.read_partials(CHAT), "chat_partials", "attempt", CHAT
    ),
    "a partial that is no text": (
        "UPDATE chat_partials SET data = CAST(x'ff' AS TEXT)", lambda s: s.read_partials(CHAT), "chat_partials", "",
        CHAT,
    ),
    "schema of a segment": (
        "UPDATE segments SET schema_number = 'x'", lambda s: s.read_segments(CHAT), "segments", "schema_number", CHAT
    ),
    "a segment that is no text": (
        "UPDATE segments SET data = CAST(x'ff' AS TEXT)", lambda s: s.read_segments(CHAT), "segments", "", CHAT
    ),
    "a worker's id": (
        "UPDATE workers SET worker = x'00' WHERE worker = 'dead'", lambda s: s.list_workers(), "workers", "worker",
        None,
    ),
    "a title that is no text": (
        "UPDATE chats SET title = CAST(x'ff' AS TEXT) WHERE chat = 'chat'", lambda s: s.list_chats(ChatQuery()),
        "chats", "", None,
    ),
    "labels that are no JSON": (
        "UPDATE chats SET labels = 'x' WHERE chat = 'chat'", lambda s: s.list_chats(ChatQuery(labels={"a": "b"})),
        "chats", "labels", CHAT,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _READS)
async def test_a_damaged_row_is_told_by_table_column_and_chat(migrated_sqlite: str, name: str) -> None:
    statement, call, table, column, chat = _READS[name]
    async with SqliteStore(migrated_sqlite) as store:
        await filled(store)
        change(migrated_sqlite, statement)
        with pytest.raises(MalformedRow) as caught:
            await call(store)
    assert (caught.value.table, caught.value.column or "", caught.value.chat) == (table, column, chat)
    assert column in str(caught.value)
    assert (chat or table) in str(caught.value)
    assert ("the header" in str(caught.value)) == (table == "chats" and chat is not None)


@pytest.mark.parametrize("statement", ["SET write_level = 'x'", "SET oldest = x'00'"])
async def test_a_file_with_damaged_levels_is_not_opened(migrated_sqlite: str, statement: str) -> None:
    change(migrated_sqlite, f"UPDATE schema_levels {statement}")
    with pytest.raises(MalformedRow, match="table schema_levels: column "):
        async with SqliteStore(migrated_sqlite):
            pass


@pytest.mark.parametrize("until", ["'x'", "x'00'"])
async def test_a_lease_that_ends_at_no_time_has_ended_for_all(migrated_sqlite: str, until: str) -> None:
    async with SqliteStore(migrated_sqlite) as store:
        await filled(store)
        assert [due.chat for due in await store.find_due(agents=["agent"], reader_level=9, limit=9)] == ["other"]
        change(migrated_sqlite, f"UPDATE workers SET expires_at = {until} WHERE worker = 'dead'")
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert not loaded.holder_alive
        due = await store.find_due(agents=["agent"], reader_level=9, limit=9)
        assert {(each.chat, each.kind) for each in due} == {("chat", "takeover"), ("other", "pending")}
        beat = await store.heartbeat(ALIVE, LEASE)
        assert beat.peers == (ALIVE,)
        assert not (await store.heartbeat(DEAD, LEASE)).renewed
        assert [(each.worker, each.expires_at > beat.now) for each in await store.list_workers()] == [
            (ALIVE, True), (DEAD, False),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE workers SET worker = x'00' WHERE worker = 'dead'", {"other", "chat"}),
        ("UPDATE chats SET ready_at = 'x' WHERE chat = 'other'", {"other"}),
        ("UPDATE chats SET owner = x'00' WHERE chat = 'other'", {"third"}),
        ("UPDATE chats SET chat = x'00' WHERE chat = 'other'", {"third"}),
    ],
)
async def test_a_damaged_row_keeps_no_other_chat_from_its_worker(
    migrated_sqlite: str, statement: str, found: set[str]
) -> None:
    async with SqliteStore(migrated_sqlite) as store:
        await filled(store)
        await store.append(appending(0, "a", chat=ChatId("third"), status="pending"))
        change(migrated_sqlite, statement)
        due = await store.find_due(agents=["agent"], reader_level=9, limit=9)
        assert {each.chat for each in due} == found | {"third"}
        assert (await store.heartbeat(ALIVE, LEASE)).renewed
        assert all(isinstance(chat, str) for chat in await store.held_by(DEAD))


@pytest.mark.parametrize("statement", ["SET data = 'x'", "SET data = CAST(x'ff' AS TEXT)", "SET data = 5"])
async def test_notes_for_people_fail_nobody(migrated_sqlite: str, statement: str) -> None:
    async with SqliteStore(migrated_sqlite) as store:
        await filled(store)
        change(migrated_sqlite, f"UPDATE refusals {statement}")
        change(migrated_sqlite, f"UPDATE workers {statement.replace('data', 'note')}")
        assert await store.last_refusal(CHAT) is None
        assert [each.note for each in await store.list_workers()] == [WorkerNote(), WorkerNote()]


async def test_labels_that_are_no_json_are_told_in_postgresql_too(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        await filled(store)
        with psycopg.connect(migrated_database, autocommit=True) as connection:
            connection.execute("UPDATE chats SET labels = 'x' WHERE chat = 'chat'")
        with pytest.raises(MalformedRow, match="chat 'chat', the header: labels"):
            await store.list_chats(ChatQuery(labels={"k": "v"}))


async def test_the_levels_row_may_not_be_gone_from_postgresql(migrated_database: str) -> None:
    with psycopg.connect(migrated_database, autocommit=True) as connection:
        kept = connection.execute("DELETE FROM schema_levels RETURNING oldest, write_level").fetchone()
    try:
        with pytest.raises(MalformedRow, match="table schema_levels: its row is gone"):
            async with PostgresStore(migrated_database):
                pass
    finally:
        with psycopg.connect(migrated_database, autocommit=True) as connection:
            connection.execute("INSERT INTO schema_levels (oldest, write_level) VALUES (%s, %s)", kept)


_EVENTS: Final = (
    "content = 5", "facts = 'x'", "type = x'00'", "type = CAST(x'ff' AS TEXT)", "position = 'x'", "recorded_at = 'x'",
    "content = x'01ff'",
)  # fmt: skip


@pytest.mark.parametrize("assignment", _EVENTS)
async def test_a_feed_goes_on_behind_a_damaged_event(migrated_sqlite: str, assignment: str) -> None:
    column = assignment.partition(" ")[0]
    connection = sqlite3.connect(parse_sqlite(migrated_sqlite).path, isolation_level=None)
    async with SqliteStore(migrated_sqlite) as store:
        await filled(store)
        sound = places(await whole(store))
        connection.execute("CREATE TEMP TABLE sound AS SELECT * FROM chat_events")
        for version in range(1, 6):
            where = f"WHERE chat = 'chat' AND version = {version}"
            assert connection.execute(f"UPDATE chat_events SET {assignment} {where}").rowcount == 1
            await goes_on_behind(store, sound, (CHAT, version), column)
            connection.execute(f"UPDATE chat_events SET {column} = (SELECT {column} FROM sound {where}) {where}")
        assert places(await whole(store)) == sound
    connection.close()


async def test_a_feed_goes_on_behind_an_event_torn_from_its_append(migrated_sqlite: str) -> None:
    sound: list[tuple[str, int]] = []
    for tx in ("7", "'x'"):
        async with SqliteStore(migrated_sqlite) as store:
            if not sound:
                await filled(store)
                sound = places(await whole(store))
            change(migrated_sqlite, f"UPDATE chat_events SET tx = {tx} WHERE chat = 'chat' AND version = 2")
            await goes_on_behind(store, sound, (CHAT, 2), "tx")


async def test_a_feed_of_postgresql_goes_on_behind_a_damaged_event(migrated_database: str) -> None:
    async with PostgresStore(migrated_database) as store:
        await filled(store)
        sound = places(await whole(store))
        for version in range(1, 6):
            with psycopg.connect(migrated_database, autocommit=True) as connection:
                connection.execute("UPDATE chat_events SET content = '\\x01ff' WHERE version = %s", (version,))
                others = "version <> %s OR chat <> 'chat'"
                connection.execute(f"UPDATE chat_events SET content = '' WHERE {others}", (version,))
            await goes_on_behind(store, sound, (CHAT, version), "content")


async def goes_on_behind(
    store: SqliteStore | PostgresStore, sound: list[tuple[str, int]], damaged: tuple[str, int], column: str
) -> None:
    """Follow the feed over one damaged event: all others come, once and in order."""
    came = list[tuple[str, int]]()
    told, moved = list[FeedEventUnreadable](), list[bool]()
    after = FEED_START
    while len(came) < len(sound) - 1:
        try:
            async with store.subscribe(after=after) as events:
                async for event in events:
                    came.append((event.chat, event.stored.envelope.version))
                    if len(came) == len(sound) - 1:
                        break
        except FeedEventUnreadable as error:
            told.append(error)
            moved.append(error.position > after)
            after = error.position
    assert all(moved)
    assert came == [place for place in sound if place != damaged]
    assert [(error.chat, column in error.why) for error in told] == [(damaged[0], True)]
