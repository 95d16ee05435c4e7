"""The life of the PostgreSQL back end and of its calls.

Each call runs in a task of its own, so that a cancelled caller never breaks a connection or half an append. Owns
opening and closing, reading (again where a connection was lost), and what a lost connection means for a write.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeVar

import psycopg

from events.ids import ChatId
from store import postgres_sql as sql
from store.contract import (
    Hint,
)
from store.errors import OutcomeUnknown, StoreUnavailable
from store.lifecycle import Reentrant, not_open
from store.notify import Bus, Subscription
from store.postgres_hints import Hints, channel_of
from store.postgres_pool import PATIENCE, Connection, Pool, Purpose, connect, translated, translation
from store.postgres_texts import CLOCK
from store.schema import READER_LEVEL, VERSION_TABLE, levels_of, needs_setup
from store.shield import outcome
from store.urls import PostgresUrl, parse_postgres

T = TypeVar("T")
Row = tuple[Any, ...]

_LAST = 2**63 - 1

_BEHIND = 0.02
"""Seconds after which it is looked again whether older transactions have ended."""


class Calls(Reentrant):
    """The open store: what the parts of ``PostgresStore`` run their statements with.

    Args:
        url: See ``PostgresStore``.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._given_url = url
        self._settings = parse_postgres(url)
        self._bus = Bus()
        self._opened: tuple[Pool, Hints] | None = None
        self._accepting = False
        self._calls: set[asyncio.Task[Any]] = set()
        self.write_level = READER_LEVEL

    async def _open(self) -> None:
        schema, self.write_level = await _prepare(self._given_url, self._settings)
        pool = Pool(self._settings)
        await pool.open()
        self._opened = (pool, Hints(self._settings, channel_of(schema), self._bus))
        self._accepting = True

    async def _close(self) -> None:
        self._accepting = False
        while self._calls:
            await asyncio.wait(self._calls)
        opened, self._opened = self._opened, None
        if opened is not None:
            pool, hints = opened
            await hints.close()
            await pool.close()

    async def raise_write_level(self, level: int) -> int:
        """See :meth:`store.contract.Store.raise_write_level`."""
        return levels_of(next(iter(await self.read(sql.RAISE_LEVEL, {"level": level})), None))[1]

    async def now(self) -> int:
        """See :meth:`store.contract.Store.now`."""
        (row,) = await self.read(f"SELECT {CLOCK}", {})
        return int(row[0])

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[Subscription]:
        """See :meth:`store.contract.Store.hints`."""
        return self._subscribe(chat)

    @asynccontextmanager
    async def _subscribe(self, chat: ChatId | None) -> AsyncIterator[Subscription]:
        self.require_open()
        _, hints = self.parts()
        async with self._bus.subscribe(chat) as subscription:
            await hints.listen(PATIENCE)
            yield subscription

    def require_open(self) -> None:
        """Check that the store takes calls.

        Raises:
            StoreUnavailable: It is not open.
        """
        if not self._accepting:
            raise not_open()

    def parts(self) -> tuple[Pool, Hints]:
        """Return the connections and the hints.

        Raises:
            StoreUnavailable: The store is not open.
        """
        if self._opened is None:
            raise not_open()
        return self._opened

    def start(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a call in a task of its own, which closing waits for."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: its caller may have been cancelled

    async def read(self, statement: str, values: Mapping[str, Any], purpose: Purpose = "calls") -> list[Row]:
        """Run a statement that may be run again: on another connection, where one was lost."""
        self.require_open()
        return await asyncio.shield(self.start(self._read_over(statement, values, purpose)))

    async def _read_over(self, statement: str, values: Mapping[str, Any], purpose: Purpose) -> list[Row]:
        async def read(connection: Connection) -> list[Row]:
            return await fetch(connection, statement, values)

        # A server that ends its sessions ends all of them, each a moment after it was told to: as many reads may be
        # lost as there are connections.
        for _ in range(self._settings.pool_size):
            with suppress(OutcomeUnknown):
                return await self.written(read, purpose)
        try:
            return await self.written(read, purpose)
        except OutcomeUnknown as error:
            raise StoreUnavailable(str(error)) from error

    async def written(self, work: Callable[[Connection], Awaitable[T]], purpose: Purpose = "calls") -> T:
        """Run work on a connection that is lent for its purpose.

        Raises:
            OutcomeUnknown: The connection was lost meanwhile.
            StoreUnavailable: The server refused; nothing was written.
            Unstorable: A value cannot be kept; nothing was written.
        """
        pool, _ = self.parts()
        async with pool.lent(purpose) as connection:
            try:
                return await work(connection)
            except (psycopg.Error, OSError, UnicodeEncodeError, OverflowError) as error:
                if connection.closed:
                    raise OutcomeUnknown(f"the connection was lost: {error}") from error
                raise translation(error) from error

    def tell(self, *given: Hint) -> None:
        """Give hints to this process and to the others."""
        self._bus.publish(given)
        _, hints = self.parts()
        hints.tell(given)


async def fetch(connection: Connection, statement: str, values: Mapping[str, Any]) -> list[Row]:
    """Run a statement and return its rows, sent in binary."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(statement, values)
        return [] if cursor.description is None else await cursor.fetchall()


async def _prepare(url: str, settings: PostgresUrl) -> tuple[str, int]:
    """Check the schema and set an empty database up.

    Returns:
        The PostgreSQL schema that holds the tables, and the level at which chats are written.
    """
    async with await connect(settings) as connection:
        with translated():
            ((schema, present, levelled, occupied),) = await fetch(connection, sql.SCHEMA, {})
            found = await fetch(connection, f"SELECT version_num FROM {VERSION_TABLE}", {}) if present else []
            levels = await fetch(connection, sql.LEVELS, {}) if levelled else []
    oldest, level = levels_of(next(iter(levels), None)) if levelled else (None, READER_LEVEL)
    if needs_setup(settings.url, found[0][0] if found else None, empty=not occupied, oldest=oldest):
        await outcome(asyncio.get_running_loop().run_in_executor(None, _migrate, url))
    return str(schema), level


def _migrate(url: str) -> None:
    from store.migrate import migrate  # takes half a second to import, and is needed once in a database's life

    migrate(url)
