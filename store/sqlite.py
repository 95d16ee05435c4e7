"""Chats in a SQLite file: the embedded default.

Owns the two threads with a connection each (one writes, one reads), opening and setting up the file, and hints: those
of this process at once, those of other processes by polling ``PRAGMA data_version``. What is said to SQLite is in
``store.sqlite_sql``. Other processes of the machine may use the same file. Database time is the machine's clock.
"""

import asyncio
import math
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from events.envelope import StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from store import sqlite_sql as sql
from store import sqlite_writes as writes
from store.clock import Clock, wall_clock
from store.contract import (
    FEED_START,
    Append,
    Appended,
    AppendResult,
    ChatQuery,
    CommandRecord,
    DueChat,
    FeedEvent,
    FeedPosition,
    Header,
    Heartbeat,
    Hint,
    LivingWorker,
    LoadedHeader,
    NewEvent,
    PartialChunk,
    RefusalNote,
    Segment,
    WorkerNote,
)
from store.errors import StoreUnavailable, Unstorable
from store.feed import follow
from store.lifecycle import Reentrant
from store.log import get_logger
from store.notify import Bus, Subscription
from store.rules import check_append, check_import, hint_of
from store.schema import READER_LEVEL, VERSION_TABLE, needs_setup
from store.shield import outcome
from store.sqlite_due import find_due
from store.sqlite_feed import changed_since, feed_end, last_position, read_feed
from store.sqlite_lock import PATIENCE, TELL_AGAIN, is_locked, said_of, tell_locked
from store.urls import SqliteUrl, parse_sqlite

T = TypeVar("T")
P = ParamSpec("P")

_log = get_logger("chatfold.store")

_PAGE: Final = 500
"""Blobs deleted at once: appends wait for no more."""

_buses: WeakValueDictionary[Path, Bus] = WeakValueDictionary()
_buses_lock = threading.Lock()


def _bus_of(path: Path) -> Bus:
    """Return the bus that all stores of this process share for one file."""
    with _buses_lock:
        return _buses.setdefault(path.resolve(), Bus())


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn the driver's errors into the store's, which name the file."""
    try:
        yield
    except (UnicodeEncodeError, OverflowError, sqlite3.DataError) as error:
        raise Unstorable(str(error)) from error
    except sqlite3.Error as error:
        raise StoreUnavailable(said_of(path, error)) from error


class _Lane:
    """One thread with one connection; work is done in the order it was given.

    Args:
        name: What its thread is called.
        path: The file.
        probe: A statement that another process's lock holds up whenever it holds up this lane's work.
        connect: Opens the connection.
    """

    def __init__(self, name: str, path: Path, probe: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._path = path
        self._probe = probe
        self._connect = connect
        self._connection: sqlite3.Connection | None = None
        self._told = -math.inf
        self.setting_up = False

    def run(
        self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> asyncio.Future[T]:
        """Give work to the thread."""

        def job() -> T:
            with _translated(self._path):
                if self._connection is None:
                    self._connection = self._connect()
                return work(self._connection, *args, **kwargs)

        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._pool, job)
        watch = loop.call_later(PATIENCE, self._look_for_lock)
        done.add_done_callback(lambda _: watch.cancel())
        return done

    def _look_for_lock(self) -> None:
        """Tell, once for a while, where work waits for a lock that another connection holds."""
        if time.monotonic() - self._told < TELL_AGAIN or self._has_lock():
            return
        # Asked again after the look: the lock that was seen may have been the one that came to us meanwhile.
        if is_locked(self._path, self._probe) and not self._has_lock():
            self._told = time.monotonic()
            tell_locked(self._path)

    def _has_lock(self) -> bool:
        if self._connection is None:
            return self.setting_up
        return self._connection.in_transaction

    async def close(self) -> None:
        """Wait for the work under way, close the connection and end the thread."""

        def job() -> None:
            if self._connection is not None:
                self._connection.close()

        await outcome(asyncio.get_running_loop().run_in_executor(self._pool, job))
        self._pool.shutdown()


class SqliteStore(Reentrant):
    """A store in a SQLite file.

    Args:
        url: ``sqlite:///PATH``, see :class:`store.urls.SqliteUrl` for its settings.
        clock: Database time, in microseconds UTC.

    Raises:
        InvalidStoreUrl: The URL is none of that form.
    """

    def __init__(self, url: str, *, clock: Clock = wall_clock) -> None:
        super().__init__()
        self._settings = parse_sqlite(url)
        self._clock = clock
        self._lanes: tuple[_Lane, _Lane] | None = None
        self._poller: asyncio.Task[None] | None = None
        self._bus = Bus()
        self._file: tuple[Path, os.stat_result] | None = None
        self.write_level = READER_LEVEL

    async def raise_write_level(self, level: int) -> int:
        """See :meth:`store.contract.Store.raise_write_level`."""
        return await outcome(self._writer.run(writes.raise_write_level, level))

    async def _open(self) -> None:
        settings = self._settings
        self._bus = _bus_of(settings.path)
        lanes = (
            _Lane("chatfold-write", settings.path, "BEGIN IMMEDIATE", lambda: _open_for_writing(settings, lanes[0])),
            _Lane(
                "chatfold-read",
                settings.path,
                "SELECT count(*) FROM sqlite_master",
                lambda: _open_for_reading(settings),
            ),
        )
        try:
            for lane in lanes:
                await outcome(lane.run(sql.data_version))
            self.write_level = await outcome(lanes[0].run(sql.write_level))
        except BaseException:
            for lane in lanes:
                await lane.close()
            raise
        path = settings.path.resolve()
        self._file = (path, path.stat())
        self._lanes = lanes

    async def _close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()
            await asyncio.wait([self._poller])
            self._poller = None
        lanes, self._lanes = self._lanes, None
        for lane in lanes or ():
            await lane.close()

    async def now(self) -> int:
        """See :meth:`store.contract.Store.now`."""
        self._require_open()
        return self._clock()

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        """See :meth:`store.contract.Store.load_header`."""

        def load(connection: sqlite3.Connection) -> LoadedHeader | None:
            return sql.load_header(connection, chat, self._clock())

        return await self._reader.run(load)

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        """See :meth:`store.contract.Store.read_events`."""
        return await self._reader.run(sql.read_events, chat, after, upto, limit, content=content)

    async def append(self, append: Append) -> AppendResult:
        """See :meth:`store.contract.Store.append`."""
        writer = self._writer
        check_append(append)

        def write(connection: sqlite3.Connection) -> AppendResult:
            self._require_file()
            result = writes.append(connection, append)
            if isinstance(result, Appended):
                self._publish(append.header)
            return result

        return await outcome(writer.run(write))

    async def import_chat(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        """See :meth:`store.contract.Store.import_chat`."""
        writer = self._writer
        check_import(header, events)

        def write(connection: sqlite3.Connection) -> bool:
            written = writes.import_chat(connection, header, events, blobs)
            if written:
                self._publish(header)
            return written

        return await outcome(writer.run(write))

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        """See :meth:`store.contract.Store.find_command`."""
        return await self._reader.run(sql.find_command, chat, command)

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        """See :meth:`store.contract.Store.list_chats`."""
        return await self._reader.run(sql.list_chats, query)

    async def list_ids(self, *, after: ChatId | None = None, limit: int = 1000) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.list_ids`."""
        return await self._reader.run(sql.list_ids, after, max(limit, 0))

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """See :meth:`store.contract.Store.get_blobs`."""
        return await self._reader.run(sql.get_blobs, digests)

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """See :meth:`store.contract.Store.delete`."""

        def work(connection: sqlite3.Connection) -> bool:
            deleted = writes.delete(connection, chat, expected_version, self._clock())
            if deleted:
                self._bus.publish([Hint(chat, expected_version + 1, due=False)])
            return deleted

        return await outcome(self._writer.run(work))

    async def tombstone(self, chat: ChatId) -> bytes | None:
        """See :meth:`store.contract.Store.tombstone`."""
        return await self._reader.run(sql.tombstone, chat)

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        """See :meth:`store.contract.Store.heartbeat`."""

        def beat(connection: sqlite3.Connection) -> Heartbeat:
            self._require_file()
            answer, old_expiry = writes.heartbeat(connection, worker, lease_us, self._clock(), start=start, note=note)
            after = self._clock()
            if answer.renewed and after >= old_expiry:
                # The commit came after the old lease's end: who saw it stale then must stay right.
                writes.expire(connection, worker, after)
                return Heartbeat(after, renewed=False, peers=sql.peers(connection, after))
            return answer

        return await outcome(self._writer.run(beat))

    async def list_workers(self) -> Sequence[LivingWorker]:
        """See :meth:`store.contract.Store.list_workers`."""
        return await self._reader.run(sql.list_workers)

    async def note_refusals(self, notes: Sequence[RefusalNote]) -> None:
        """See :meth:`store.contract.Store.note_refusals`."""
        await outcome(self._writer.run(writes.note_refusals, notes))

    async def last_refusal(self, chat: ChatId) -> RefusalNote | None:
        """See :meth:`store.contract.Store.last_refusal`."""
        return await self._reader.run(sql.last_refusal, chat)

    async def forget_worker(self, worker: WorkerId) -> None:
        """See :meth:`store.contract.Store.forget_worker`."""
        await outcome(self._writer.run(writes.expire, worker, self._clock()))

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.held_by`."""
        return await self._reader.run(sql.held_by, worker)

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        """See :meth:`store.contract.Store.find_due`."""
        return await self._reader.run(find_due, agents, reader_level, limit, self._clock(), exclude)

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> None:
        """See :meth:`store.contract.Store.write_partials`."""
        await outcome(self._writer.run(writes.write_partials, chunks))

    async def read_partials(self, chat: ChatId) -> Sequence[PartialChunk]:
        """See :meth:`store.contract.Store.read_partials`."""
        return await self._reader.run(sql.read_partials, chat)

    async def read_segments(self, chat: ChatId, *, data: bool = True) -> Sequence[Segment]:
        """See :meth:`store.contract.Store.read_segments`."""
        return await self._reader.run(sql.read_segments, chat, data=data)

    async def write_segment(self, segment: Segment, replaces: Sequence[Segment] = ()) -> bool:
        """See :meth:`store.contract.Store.write_segment`."""
        return await outcome(self._writer.run(writes.write_segment, segment, replaces))

    async def drop_segments(self, chat: ChatId) -> None:
        """See :meth:`store.contract.Store.drop_segments`."""
        await outcome(self._writer.run(writes.drop_segments, chat))

    async def rebuild_header(self, header: Header) -> bool:
        """See :meth:`store.contract.Store.rebuild_header`."""

        def work(connection: sqlite3.Connection) -> bool:
            written = writes.rebuild_header(connection, header)
            if written:
                self._publish(header)
            return written

        return await outcome(self._writer.run(work))

    async def collect_blobs(self) -> int:
        """See :meth:`store.contract.Store.collect_blobs`."""
        collected = 0
        while unused := await self._reader.run(sql.unused_blobs, _PAGE):
            collected += await outcome(self._writer.run(writes.drop_unused, unused))
        return collected

    async def read_feed(self, *, after: FeedPosition, limit: int) -> Sequence[FeedEvent]:
        """See :meth:`store.contract.Store.read_feed`."""
        return await self._reader.run(read_feed, after, limit)

    async def feed_end(self) -> FeedPosition:
        """See :meth:`store.contract.Store.feed_end`."""
        return await self._reader.run(feed_end)

    def subscribe(self, *, after: FeedPosition = FEED_START) -> AbstractAsyncContextManager[AsyncIterator[FeedEvent]]:
        """See :meth:`store.contract.Store.subscribe`."""
        return follow(self, after)

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[Subscription]:
        """See :meth:`store.contract.Store.hints`."""
        return self._subscribe(chat)

    @asynccontextmanager
    async def _subscribe(self, chat: ChatId | None) -> AsyncIterator[Subscription]:
        writer = self._writer
        async with self._bus.subscribe(chat) as subscription:
            if self._poller is None:
                seen = await writer.run(lambda connection: (sql.data_version(connection), last_position(connection)))
                if self._poller is None:
                    self._poller = asyncio.create_task(self._poll(writer, *seen), name="chatfold-sqlite-poll")
            yield subscription

    async def _poll(self, writer: _Lane, version: int, position: int) -> None:
        """Publish what other processes changed. The writing connection is asked: its own commits do not count there."""
        while True:
            await asyncio.sleep(self._settings.poll)
            try:
                found = await writer.run(sql.data_version)
                if found != version:
                    hints, position = await writer.run(changed_since, position, self._clock())
                    version = found
                    self._bus.publish(hints)
            except StoreUnavailable as error:
                _log.warning("hints_not_read", error=str(error))

    def _publish(self, header: Header) -> None:
        self._bus.publish([hint_of(header, self._clock())])

    def _require_file(self) -> None:
        """Check that the file still stands at its path: SQLite would go on writing into one that was deleted.

        Raises:
            StoreUnavailable: It does not.
        """
        if self._file is None:
            return
        path, opened = self._file
        try:
            same = os.path.samestat(path.stat(), opened)
        except FileNotFoundError:
            same = False
        if not same:
            raise StoreUnavailable(f"{path} was deleted or replaced while it was in use; what is written would be lost")

    def _require_open(self) -> tuple[_Lane, _Lane]:
        if self._lanes is None:
            raise StoreUnavailable("the store is not open")
        return self._lanes

    @property
    def _writer(self) -> _Lane:
        return self._require_open()[0]

    @property
    def _reader(self) -> _Lane:
        return self._require_open()[1]


def _connect(settings: SqliteUrl) -> sqlite3.Connection:
    connection = sqlite3.connect(settings.path, timeout=settings.busy_timeout, isolation_level=None)
    connection.execute(f"PRAGMA synchronous = {settings.synchronous}")
    return connection


def _open_for_writing(settings: SqliteUrl, lane: _Lane) -> sqlite3.Connection:
    connection = _connect(settings)
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        row = oldest = None
        if VERSION_TABLE in tables:
            row = connection.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone()
        if "schema_levels" in tables:
            (oldest,) = connection.execute("SELECT oldest FROM schema_levels").fetchone()
        if needs_setup(settings.url, None if row is None else row[0], empty=not tables, oldest=oldest):
            lane.setting_up = True  # the lock that may be seen now is ours
            from store.migrate import migrate  # takes half a second to import, and is needed once in a file's life

            migrate(settings.url)
        _enter_wal(connection, settings.busy_timeout)
    except BaseException:
        connection.close()
        raise
    return connection


def _open_for_reading(settings: SqliteUrl) -> sqlite3.Connection:
    connection = _connect(settings)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _enter_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to a write-ahead log. SQLite does not wait for a lock here when two processes switch at once, so we do."""
    deadline = time.monotonic() + patience
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            if mode != "wal":
                raise StoreUnavailable(f"SQLite cannot keep a write-ahead log here (journal mode {mode})")
            return
