"""Databases find what is asked by index: nothing slows down with the length of a chat or the number of idle chats."""

from typing import Any

import pytest

from events.ids import ChatId
from store import postgres_due, postgres_sql, sqlite_batch, sqlite_due, sqlite_feed, sqlite_sql, sqlite_writes
from store.postgres import PostgresStore
from store.postgres_pool import configure, connect
from store.query import ChatQuery
from store.sqlite import SqliteStore
from store.urls import parse_postgres
from tests.store.making import CHAT, appending, events, header

DUE: dict[str, Any] = {"level": 1, "limit": 10}


async def fill(url: str, number: int) -> None:
    async with await connect(parse_postgres(url)) as connection:
        await connection.execute("TRUNCATE chats")  # rows of earlier tests that were deleted still take their pages
        await connection.execute(
            "INSERT INTO chats (chat, owner, agent, created_at, labels, pinned, archived, is_foreign, reader_level,"
            " listed_at, epoch, status, interrupting, queued, queue_version, version, history_version, updated_at,"
            " control, digest) SELECT 'idle ' || n, 'owner ' || n %% 100, 'agent', n, '{}', false, false, false, 1, n,"
            " 0, 'waiting', false, 0, 0, 1, 1, n, '', '' FROM generate_series(1, %s) n",
            (number,),
        )
        # One in twenty runs, on twenty workers.
        await connection.execute(
            "UPDATE chats SET status = 'running', holder = 'worker ' || created_at / 20 % 20, ready_at = created_at "
            "WHERE created_at % 20 = 0"
        )
        await connection.execute("ANALYZE chats")


async def postgres_plan(url: str, statement: str, values: dict[str, Any], options: str = "VERBOSE") -> str:
    async with await connect(parse_postgres(url)) as connection:
        await configure(connection)
        rows = await (await connection.execute(f"EXPLAIN ({options}) {statement}".encode(), values)).fetchall()
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("expected", [0, 500])
async def test_postgres_appends_by_index_whatever_the_length(migrated_database: str, expected: int) -> None:
    async with PostgresStore(migrated_database) as store:
        await store.import_chat(header(500), events(1, *map(str, range(500))), {})
    append = appending(expected, "new", blobs={"d": b""}, erased={1: b""} if expected else {})
    plan = await postgres_plan(
        migrated_database, postgres_sql.append_statement(append), postgres_sql.append_values(append)
    )
    assert "ix_chat_events_command" in plan
    assert "Seq Scan" not in plan


async def test_postgres_finds_due_chats_among_idle_ones(migrated_database: str) -> None:
    await fill(migrated_database, 20_000)
    plan = await postgres_plan(
        migrated_database,
        postgres_due.FIND_DUE,
        DUE | {"agents": ["agent"], "exclude": ["idle 1"], "window": 10},
        "VERBOSE, ANALYZE",
    )
    assert "ix_chats_ready" in plan
    assert plan.count("using ix_chats_holder") >= 2, "the first holder, and the next ones"
    assert "Seq Scan on public.chats" not in plan


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (ChatQuery(owner="owner 7", before=(900, CHAT)), "ix_chats_owner"),
        (ChatQuery(before=(900, CHAT)), "ix_chats_listed"),
    ],
)
async def test_postgres_lists_by_index(migrated_database: str, query: ChatQuery, index: str) -> None:
    await fill(migrated_database, 20_000)
    statement, values = postgres_sql.list_statement(query)
    plan = await postgres_plan(migrated_database, statement, values)
    assert index in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (postgres_sql.LOAD, {"chat": "idle 7"}),
        (postgres_sql.LIST_IDS, {"after": "idle 7", "limit": 1000}),
        (postgres_due.FIND_DUE, DUE | {"agents": ["agent"], "exclude": [], "window": 10}),
        (postgres_due.FIRSTS, DUE | {"agents": ["agent"], "exclude": [], "owners": 10}),
        postgres_sql.list_statement(ChatQuery(owner="owner 7")),
        postgres_sql.list_statement(ChatQuery()),
        postgres_sql.list_statement(ChatQuery(statuses=("error",))),
        postgres_sql.list_statement(ChatQuery(labels={"k": "v"})),
    ],
)
async def test_plans_of_small_tables_fit_large_ones(
    migrated_database: str, statement: str, values: dict[str, Any]
) -> None:
    """A plan stays as it was made until the table is analysed, however the table has grown."""
    await fill(migrated_database, 30)
    assert "Seq Scan on public.chats" not in await postgres_plan(migrated_database, statement, values)


async def test_without_being_told_a_small_table_is_scanned(migrated_database: str) -> None:
    """What connections are told is needed: see ``configure``."""
    await fill(migrated_database, 30)
    async with await connect(parse_postgres(migrated_database)) as connection:
        await configure(connection)
        await connection.execute("SET enable_seqscan = on")
        found = await connection.execute(f"EXPLAIN {postgres_sql.LOAD}".encode(), {"chat": "idle 7"})
        plan = "\n".join(row[0] for row in await found.fetchall())
    assert "Seq Scan on chats" in plan


async def sqlite_plan(store: SqliteStore, statement: str, values: Any) -> list[str]:
    _, reader = store._require_open()
    return await reader.run(
        lambda connection: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    )


DUE_VALUES = DUE | {"agents": "[]", "exclude": "[]", "now": 1, "window": 10, "owners": 10}
"""What SQLite's statements for due chats are given."""


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (sqlite_sql.LOAD, ("c",)),
        (sqlite_sql.FIND_START, ("c", "x")),
        (sqlite_sql.FIND_END, ("c", 1, "x")),
        (sqlite_sql.PARTIALS, ("c",)),
        (sqlite_sql.SEGMENTS, ("c",)),
        (sqlite_batch.STANDS, ("c",)),
        (sqlite_batch.STAND_ALL, ('["c"]',)),
        (sqlite_batch.UPDATE_PLAIN, (None,) * 20),
        (sqlite_writes.UPDATE_HEADER, (None,) * 27),
        (sqlite_writes.IS_ERASED, ("c", 1, "x")),
        (sqlite_writes.DROP_UNUSED, ("d", "d")),
        (sqlite_feed.LAST, ()),
        (sqlite_feed.LAST_HEAD, ()),
        (sqlite_feed.CHANGED, {"now": 1, "seen": 1}),
        (sqlite_feed.HEAD, (1,)),
        (sqlite_feed.HEADS, (1,)),
        (sqlite_feed.FROM_HEAD, ("c", 1)),
        (sqlite_due.LOST, DUE_VALUES),
        (sqlite_due.PENDING, DUE_VALUES),
        (sqlite_due.EXPIRED, DUE_VALUES),
        (sqlite_due.FIRSTS, DUE_VALUES),
    ],
)
async def test_sqlite_searches_and_never_scans(migrated_sqlite: str, statement: str, values: Any) -> None:
    async with SqliteStore(migrated_sqlite) as store:
        await store.append(appending(0, chat=ChatId("x")))
        plan = await sqlite_plan(store, statement, values)
    # What a recursive query found, the ids of an argument and an index from its end are gone through.
    scanned = [step for step in plan if step.startswith("SCAN") and not step.startswith(_SMALL)]
    scanned += [step for step in plan if "USE TEMP B-TREE" in step and statement in _IN_INDEX_ORDER]
    assert not scanned, f"{statement}\n{plan}"


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (sqlite_due.LOST, "c USING INDEX ix_chats_holder (holder=?)"),
        (sqlite_due.PENDING, "chats USING INDEX ix_chats_ready (status=?"),
        (sqlite_due.EXPIRED, "chats USING INDEX ix_chats_ready (status=? AND ready_at"),
        (sqlite_due.FIRSTS, "chats USING INDEX ix_chats_ready_owner (status=? AND owner=? AND ready_at"),
    ],
)
async def test_sqlite_finds_due_chats_among_idle_ones(migrated_sqlite: str, statement: str, index: str) -> None:
    async with SqliteStore(migrated_sqlite) as store:
        plan = await sqlite_plan(store, statement, DUE_VALUES)
    assert any(f"SEARCH {index}" in step for step in plan), plan


_SMALL = ("SCAN CONSTANT ROW", "SCAN h", "SCAN o", "SCAN json_each", "SCAN dead")
_IN_INDEX_ORDER = {sqlite_feed.LAST_HEAD, sqlite_feed.LAST, sqlite_feed.HEAD, sqlite_feed.HEADS}
