"""Durable steps: the whole engine beside the limit of its database, in one run, and beside peers that are installed.

The bars are shares of the limit, which does not depend on the machine. Peers come with ``tests/benchmarks/peers.txt``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import psycopg
import pytest

from tests.benchmarks import peers
from tests.benchmarks.crew import Crew
from tests.benchmarks.limits import RawGroup, RawSqlite, RawSqliteGroup, RawStatement
from tests.benchmarks.ours import Ours
from tests.benchmarks.work import STEPS, AnyContender, Contender, Figures, in_rounds, show

CHATS: Final = 64
ENGINE: Final = "chatfold"
CORES: Final = 2
CREW: Final = f"chatfold, {CORES} processes"

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]


async def _measured(
    title: str, contenders: list[AnyContender], chats: int, turns: dict[str, int]
) -> dict[str, Figures]:
    found = await in_rounds(contenders, chats, turns)
    show(title, found.values(), "steps/s", found[contenders[0].name])
    return found


async def test_postgres_many_chats_at_once(durable_database: Callable[[], str]) -> None:
    limit, statement = RawGroup(durable_database()), RawStatement(durable_database())
    contenders: list[AnyContender] = [
        limit,
        statement,
        Ours(ENGINE, durable_database()),
        Crew(CREW, durable_database(), CORES),
        *peers.on_postgres(durable_database),
    ]
    turns = {"": 5, limit.name: 20, statement.name: 10, ENGINE: 10, CREW: 20}
    found = await _measured(f"PostgreSQL, {CHATS} chats at once", contenders, CHATS, turns)
    engine = found[ENGINE].median
    assert engine >= 0.45 * found[limit.name].median
    assert engine >= found[statement.name].median
    for peer, factor in peers.FACTORS.items():
        best = max((figures.median for name, figures in found.items() if name.startswith(peer)), default=0.0)
        assert engine >= factor * best, peer


async def test_postgres_one_chat_alone(durable_database: Callable[[], str]) -> None:
    statement = RawStatement(durable_database())
    contenders: list[AnyContender] = [
        statement,
        RawGroup(durable_database()),
        Ours(ENGINE, durable_database()),
    ]
    contenders += peers.on_postgres(durable_database)
    turns = {"": 25, statement.name: 100, RawGroup.name: 100, ENGINE: 100}
    found = await _measured("PostgreSQL, one chat alone", contenders, 1, turns)
    assert found[ENGINE].median >= 0.7 * found[statement.name].median


async def test_sqlite_many_chats_at_once(tmp_path: Path) -> None:
    limit, single = RawSqliteGroup(tmp_path / "group.db"), RawSqlite(tmp_path / "single.db")
    contenders: list[AnyContender] = [
        limit,
        single,
        Ours(ENGINE, f"sqlite:///{tmp_path}/ours.db"),
        *peers.on_sqlite(tmp_path),
    ]
    turns = {"": 5, limit.name: 50, single.name: 20, ENGINE: 10}
    found = await _measured(f"SQLite, full durability, {CHATS} chats at once", contenders, CHATS, turns)
    assert found[ENGINE].median >= 1.5 * found[single.name].median


async def test_sqlite_one_chat_alone(tmp_path: Path) -> None:
    single = RawSqlite(tmp_path / "single.db")
    contenders: list[AnyContender] = [
        single,
        Ours(ENGINE, f"sqlite:///{tmp_path}/ours.db"),
        *peers.on_sqlite(tmp_path),
    ]
    turns = {"": 25, single.name: 200, ENGINE: 100}
    await _measured("SQLite, full durability, one chat alone", contenders, 1, turns)


async def test_what_a_turn_writes(durable_database: Callable[[], str]) -> None:
    print("\nPostgreSQL, written by a turn (the settled state of 64 chats; full-page images counted)")
    written: dict[str, tuple[float, float]] = {}
    makes: tuple[tuple[Callable[[str], Contender], str], ...] = (
        (RawStatement, "SELECT count(*) FROM raw_event"),
        (lambda url: Ours(ENGINE, url), "SELECT count(DISTINCT tx) FROM chat_events"),
    )
    for make, appends_so_far in makes:
        url = durable_database()
        contender = make(url)
        await contender.open()
        try:
            written[contender.name] = await _written(contender, url, appends_so_far)
        finally:
            await contender.close()
        log, commits = written[contender.name]
        print(f"  {contender.name:<44}{log:>12,.0f} B of log, {commits:.1f} appends")
    (raw, _), (engine, appends) = written.values()
    assert appends <= STEPS
    assert engine <= 2 * raw


async def _written(contender: Contender, url: str, appends_so_far: str) -> tuple[float, float]:
    """Return bytes of write-ahead log, and appends, for each turn."""
    chats = [await contender.new_chat() for _ in range(CHATS)]
    turns = 10
    for chat in chats:
        await contender.turn(chat)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        before = _log_and_appends(connection, appends_so_far)
        for _ in range(turns):
            for chat in chats:  # one after the other: group commit would hide what a turn costs by itself
                await contender.turn(chat)
        after = _log_and_appends(connection, appends_so_far)
    count = turns * len(chats)
    return (after[0] - before[0]) / count, (after[1] - before[1]) / count


def _log_and_appends(connection: psycopg.Connection, appends_so_far: str) -> tuple[int, int]:
    log = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").fetchone()
    appends = connection.execute(appends_so_far.encode()).fetchone()
    assert log is not None
    assert appends is not None
    return int(log[0]), int(appends[0])
