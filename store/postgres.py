"""Chats in PostgreSQL: for many workers on many machines.

Owns the life of the store and of its calls: each runs in a task of its own, so that a cancelled caller never breaks a
connection or half an append. Statements are in ``store.postgres_sql``, connections in ``store.postgres_pool``, hints in
``store.postgres_hints``. An append is one statement and one round trip.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import psycopg

from events.envelope import StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from store import postgres_sql as sql
from store.contract import (
    Append,
    Appended,
    AppendResult,
    ChatQuery,
    CommandRecord,
    Conflict,
    DueChat,
    DuplicateCommand,
    Header,
    Heartbeat,
    LoadedHeader,
    NewEvent,
)
from store.errors import OutcomeUnknown, StoreUnavailable
from store.lifecycle import Reentrant
from store.notify import Bus, Subscription
from store.postgres_hints import Hints, channel_of
from store.postgres_pool import PATIENCE, Connection, Pool, connect, translated, translation
from store.rows import HEADER_COLUMNS, event_of, header_of
from store.rules import check_append, check_import, hint_of
from store.schema import READER_LEVEL, VERSION_TABLE, needs_setup
from store.shield import outcome
from store.urls import PostgresUrl, parse_postgres

T = TypeVar("T")
Row = tuple[Any, ...]

_LAST = 2**63 - 1


class PostgresStore(Reentrant):
    """A store in a PostgreSQL database.

    Args:
        url: A ``postgresql://`` URL as libpq takes it; ``pool_size`` in its query bounds the connections (10).

    Raises:
        InvalidStoreUrl: ``pool_size`` is not a whole number from 1.
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
        return int((await self._read(sql.RAISE_LEVEL, {"level": level}))[0][0])

    async def now(self) -> int:
        """See :meth:`store.contract.Store.now`."""
        (row,) = await self._read(f"SELECT {sql.CLOCK}", {})
        return int(row[0])

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        """See :meth:`store.contract.Store.load_header`."""
        rows = await self._read(sql.LOAD, {"chat": chat})
        if not rows:
            return None
        now, alive = rows[0][len(HEADER_COLUMNS) :]
        return LoadedHeader(header=header_of(rows[0]), now=now, holder_alive=alive)

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        """See :meth:`store.contract.Store.read_events`."""
        values = {
            "chat": chat,
            "after": after,
            "upto": _LAST if upto is None else upto,
            "limit": _LAST if limit is None else max(limit, 0),
        }
        return [event_of(chat, row) for row in await self._read(sql.read_events_statement(content=content), values)]

    async def append(self, append: Append) -> AppendResult:
        """See :meth:`store.contract.Store.append`."""
        self._require_open()
        check_append(append)
        return await outcome(self._start(self._append(append)))

    async def import_chat(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        """See :meth:`store.contract.Store.import_chat`."""
        self._require_open()
        check_import(header, events)
        return await outcome(self._start(self._import(header, events, blobs)))

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        """See :meth:`store.contract.Store.find_command`."""
        rows = await self._read(sql.FIND_COMMAND, {"chat": chat, "command": command})
        return CommandRecord(rows[0][0], rows[0][2], rows[0][1]) if rows else None

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        """See :meth:`store.contract.Store.list_chats`."""
        return [header_of(row) for row in await self._read(*sql.list_statement(query))]

    async def list_ids(self, *, after: ChatId | None = None, limit: int = 1000) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.list_ids`."""
        return [row[0] for row in await self._read(sql.LIST_IDS, {"after": after or "", "limit": max(limit, 0)})]

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """See :meth:`store.contract.Store.get_blobs`."""
        return dict(await self._read(sql.GET_BLOBS, {"digests": list(digests)}))

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """See :meth:`store.contract.Store.delete`."""

        async def write(connection: Connection) -> bool:
            return bool((await _fetch(connection, sql.DELETE, {"chat": chat, "version": expected_version}))[0][0])

        return await outcome(self._start(self._written(write)))

    async def tombstone(self, chat: ChatId) -> bytes | None:
        """See :meth:`store.contract.Store.tombstone`."""
        rows = await self._read(sql.TOMBSTONE, {"chat": chat})
        return bytes(rows[0][0]) if rows else None

    async def heartbeat(self, worker: WorkerId, lease_us: int, *, start: bool = False) -> Heartbeat:
        """See :meth:`store.contract.Store.heartbeat`."""
        before = time.monotonic_ns()
        rows = await self._read(sql.START if start else sql.RENEW, {"worker": worker, "lease": lease_us})
        now, renewed, old_expiry = rows[0]
        took = (time.monotonic_ns() - before) // 1000
        if renewed and old_expiry is not None and took >= old_expiry - now:
            # The commit may have come after the old lease's end: who saw it stale then must stay right.
            await self.forget_worker(worker)
            return Heartbeat(now, renewed=False)
        return Heartbeat(now, bool(renewed))

    async def forget_worker(self, worker: WorkerId) -> None:
        """See :meth:`store.contract.Store.forget_worker`."""
        await self._read(sql.EXPIRE, {"worker": worker})

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.held_by`."""
        return [row[0] for row in await self._read(sql.HELD_BY, {"worker": worker})]

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        """See :meth:`store.contract.Store.find_due`."""
        values = {"agents": list(agents), "level": reader_level, "limit": max(limit, 0), "exclude": list(exclude)}
        return [DueChat(*row) for row in await self._read(sql.FIND_DUE, values)]

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[Subscription]:
        """See :meth:`store.contract.Store.hints`."""
        return self._subscribe(chat)

    @asynccontextmanager
    async def _subscribe(self, chat: ChatId | None) -> AsyncIterator[Subscription]:
        self._require_open()
        _, hints = self._parts()
        async with self._bus.subscribe(chat) as subscription:
            await hints.listen(PATIENCE)
            yield subscription

    def _require_open(self) -> None:
        if not self._accepting:
            raise StoreUnavailable("the store is not open")

    def _parts(self) -> tuple[Pool, Hints]:
        if self._opened is None:
            raise StoreUnavailable("the store is not open")
        return self._opened

    def _start(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: its caller may have been cancelled

    async def _read(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        """Run a statement that may be run twice: once more, on another connection, where one was lost."""
        self._require_open()
        return await asyncio.shield(self._start(self._read_twice(statement, values)))

    async def _read_twice(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        try:
            return await self._read_once(statement, values)
        except OutcomeUnknown:
            try:
                return await self._read_once(statement, values)
            except OutcomeUnknown as error:
                raise StoreUnavailable(str(error)) from error

    async def _read_once(self, statement: str, values: Mapping[str, Any]) -> list[Row]:
        async def read(connection: Connection) -> list[Row]:
            return await _fetch(connection, statement, values)

        return await self._written(read)

    async def _written(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run work on a lent connection.

        Raises:
            OutcomeUnknown: The connection was lost meanwhile.
            StoreUnavailable: The server refused; nothing was written.
            Unstorable: A value cannot be kept; nothing was written.
        """
        pool, _ = self._parts()
        async with pool.lent() as connection:
            try:
                return await work(connection)
            except (psycopg.Error, OSError, UnicodeEncodeError, OverflowError) as error:
                if connection.closed:
                    raise OutcomeUnknown(f"the connection was lost: {error}") from error
                raise translation(error) from error

    async def _append(self, append: Append) -> AppendResult:
        values = sql.append_values(append)
        statement = sql.append_statement(append)

        async def write(connection: Connection) -> AppendResult:
            try:
                result = _result(append, (await _fetch(connection, statement, values))[0])
            except psycopg.errors.UniqueViolation:
                result = None
            if result is None:
                # What stopped the append was committed after its snapshot was taken: look again.
                (row,) = await _fetch(connection, sql.RECHECK, values)
                result = _result(append, row)
            if result is None:
                raise StoreUnavailable(f"the append to {append.chat!r} broke a constraint; nothing was written")
            return result

        result = await self._written(write)
        if isinstance(result, Appended):
            self._publish(append.header, append.events)
        return result

    async def _import(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        async def write(connection: Connection) -> bool:
            async with connection.transaction():
                (row,) = await _fetch(connection, sql.CREATE, sql.header_values(header))
                if not row[0]:
                    return False
                for batch in sql.batches(events):
                    await connection.execute(sql.INSERT_EVENTS, sql.event_values(header.chat, batch))
                if blobs:
                    await connection.execute(sql.INSERT_BLOBS, sql.blob_values(blobs))
            return True

        written = await self._written(write)
        if written:
            self._publish(header, events)
        return written

    def _publish(self, header: Header, events: Sequence[NewEvent]) -> None:
        hint = hint_of(header, events[-1].stored.envelope.recorded_at)
        self._bus.publish([hint])
        _, hints = self._parts()
        hints.tell(hint)


def _result(append: Append, row: Row) -> AppendResult | None:
    """Read what an append's statement says; None where it was stopped by what its snapshot did not see."""
    written, duplicate, fingerprint, version, buried = row
    if written:
        return Appended()
    if duplicate is not None:
        return DuplicateCommand(duplicate, fingerprint)
    if append.expected_version == 0:
        found = buried if version is None else version
        return None if found is None else Conflict(found)
    return None if version == append.expected_version else Conflict(version or 0)


async def _fetch(connection: Connection, statement: str, values: Mapping[str, Any]) -> list[Row]:
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
            ((schema, present, levelled, occupied),) = await _fetch(connection, sql.SCHEMA, {})
            found = await _fetch(connection, f"SELECT version_num FROM {VERSION_TABLE}", {}) if present else []
            levels = await _fetch(connection, sql.LEVELS, {}) if levelled else []
    oldest, level = levels[0] if levels else (None, READER_LEVEL)
    if needs_setup(settings.url, found[0][0] if found else None, empty=not occupied, oldest=oldest):
        await outcome(asyncio.get_running_loop().run_in_executor(None, _migrate, url))
    return str(schema), int(level)


def _migrate(url: str) -> None:
    from store.migrate import migrate  # takes half a second to import, and is needed once in a database's life

    migrate(url)
