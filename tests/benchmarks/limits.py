"""The physical limit: the least that makes one event of a chat durable, in plain SQL over each driver.

A step moves the chat's row on and inserts an event of about 1 kB, in one commit. Group commit takes the steps of all
that wait into one transaction. No engine: these say what the machine, the database and the driver allow.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sqlite3
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg_pool import AsyncConnectionPool

from tests.benchmarks.work import STEPS, Texts

_TABLES: Final = """
CREATE TABLE raw_chat (id bigint PRIMARY KEY, seq int NOT NULL, status text NOT NULL, updated_at timestamptz NOT NULL);
CREATE TABLE raw_event (chat bigint NOT NULL, seq int NOT NULL, type text NOT NULL, body jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (chat, seq));
"""
_NEW: Final = "INSERT INTO raw_chat VALUES (%s, 0, 'idle', now())"
_ONE: Final = """
WITH c AS (UPDATE raw_chat SET seq = seq + 1, updated_at = now() WHERE id = %s AND seq = %s RETURNING id, seq)
INSERT INTO raw_event (chat, seq, type, body) SELECT id, seq, %s, %s::text::jsonb FROM c RETURNING seq
"""
_GROUP: Final = """
WITH e AS (SELECT * FROM unnest(%s::bigint[], %s::int[], %s::text[], %s::text[]) AS t (id, seq, type, body)),
c AS (
  UPDATE raw_chat SET seq = e.seq, updated_at = now() FROM e
  WHERE raw_chat.id = e.id AND raw_chat.seq = e.seq - 1 RETURNING raw_chat.id
)
INSERT INTO raw_event (chat, seq, type, body) SELECT e.id, e.seq, e.type, e.body::jsonb FROM e JOIN c ON c.id = e.id
"""
_KINDS: Final = ("user", "call", "result", "text")


class RawChat:
    """A chat of the limit: its number and how far it is."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seq = 0


class _Raw(ABC):
    """What both databases share."""

    def __init__(self) -> None:
        self._texts = Texts()
        self._numbers = itertools.count(1)

    def _body(self, kind: str, seq: int) -> str:
        return json.dumps({"type": kind, "id": f"m{seq}", "content": self._texts(), "name": ""})

    async def turn(self, chat: RawChat) -> None:
        for kind in _KINDS[:STEPS]:
            await self._step(chat, kind)
            chat.seq += 1

    @abstractmethod
    async def _step(self, chat: RawChat, kind: str) -> None:
        """Make one step durable."""


class RawStatement(_Raw):
    """PostgreSQL, one statement and one commit for each step."""

    name = "limit: psycopg, one statement"

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    async def open(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(_TABLES)
        settings: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0}
        self._pool = AsyncConnectionPool(self._url, kwargs=settings, min_size=8, max_size=8, open=False)
        await self._pool.open(wait=True)

    async def close(self) -> None:
        await self._pool.close()

    async def new_chat(self) -> RawChat:
        chat = RawChat(next(self._numbers))
        async with self._pool.connection() as connection:
            await connection.execute(_NEW, (chat.number,))
        return chat

    async def _step(self, chat: RawChat, kind: str) -> None:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(_ONE, (chat.number, chat.seq, kind, self._body(kind, chat.seq)))
            assert await cursor.fetchone() == (chat.seq + 1,)


class _Gathering(_Raw):
    """Steps that wait while a commit is under way go together in the next one."""

    def _begin(self) -> None:
        self._waiting: list[tuple[int, int, str, str, asyncio.Future[None]]] = []
        self._awake = asyncio.Event()
        self._writer = asyncio.create_task(self._write())

    async def _end(self) -> None:
        self._writer.cancel()
        await asyncio.wait([self._writer])

    async def _step(self, chat: RawChat, kind: str) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((chat.number, chat.seq + 1, kind, self._body(kind, chat.seq), done))
        self._awake.set()
        await done

    async def _write(self) -> None:
        while True:
            await self._awake.wait()
            self._awake.clear()
            batch, self._waiting = self._waiting, []
            if batch:
                await self._commit(batch)
                for *_, done in batch:
                    done.set_result(None)

    @abstractmethod
    async def _commit(self, batch: list[tuple[int, int, str, str, asyncio.Future[None]]]) -> None:
        """Make a batch durable."""


class RawGroup(_Gathering):
    """PostgreSQL, one statement and one commit for the steps of all chats that wait."""

    name = "limit: psycopg, group commit"

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    async def open(self) -> None:
        self._connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True, prepare_threshold=0)
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(_TABLES)
        self._begin()

    async def close(self) -> None:
        await self._end()
        await self._connection.close()

    async def new_chat(self) -> RawChat:
        chat = RawChat(next(self._numbers))
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(_NEW, (chat.number,))
        return chat

    async def _commit(self, batch: list[tuple[int, int, str, str, asyncio.Future[None]]]) -> None:
        columns = [list(column) for column in zip(*(entry[:STEPS] for entry in batch), strict=True)]
        cursor = await self._connection.execute(_GROUP, columns)
        assert cursor.rowcount == len(batch)


_SQLITE_TABLES: Final = """
CREATE TABLE raw_chat (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, status TEXT NOT NULL, updated_at REAL);
CREATE TABLE raw_event (chat INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL, at REAL,
  PRIMARY KEY (chat, seq));
"""
_INSERT: Final = "INSERT INTO raw_event VALUES (?, ?, ?, ?, julianday('now'))"
_UPDATE: Final = "UPDATE raw_chat SET seq = ?, updated_at = julianday('now') WHERE id = ? AND seq = ?"


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(_SQLITE_TABLES)
    return connection


class RawSqlite(_Raw):
    """SQLite with full durability, one commit for each step, on the event loop's own thread."""

    name = "limit: sqlite3, one commit per step"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def open(self) -> None:
        self._connection = _connect(self._path)

    async def close(self) -> None:
        self._connection.close()

    async def new_chat(self) -> RawChat:
        chat = RawChat(next(self._numbers))
        self._connection.execute("INSERT INTO raw_chat VALUES (?, 0, 'idle', NULL)", (chat.number,))
        return chat

    async def _step(self, chat: RawChat, kind: str) -> None:
        connection, after = self._connection, chat.seq + 1
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_INSERT, (chat.number, after, kind, self._body(kind, chat.seq)))
        assert connection.execute(_UPDATE, (after, chat.number, chat.seq)).rowcount == 1
        connection.execute("COMMIT")
        await asyncio.sleep(0)


class RawSqliteGroup(_Gathering):
    """SQLite with full durability, one writer thread, one commit for the steps of all chats that wait."""

    name = "limit: sqlite3, thread and group commit"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    async def open(self) -> None:
        self._connection = _connect(self._path)
        self._begin()

    async def close(self) -> None:
        await self._end()
        self._connection.close()

    async def new_chat(self) -> RawChat:
        chat = RawChat(next(self._numbers))
        self._connection.execute("INSERT INTO raw_chat VALUES (?, 0, 'idle', NULL)", (chat.number,))
        return chat

    async def _commit(self, batch: list[tuple[int, int, str, str, asyncio.Future[None]]]) -> None:
        await asyncio.to_thread(self._store, batch)

    def _store(self, batch: list[tuple[int, int, str, str, asyncio.Future[None]]]) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        for number, seq, kind, body, _ in batch:
            connection.execute(_INSERT, (number, seq, kind, body))
            connection.execute(_UPDATE, (seq, number, seq - 1))
        connection.execute("COMMIT")
