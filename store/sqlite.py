"""Chats in a SQLite file: the embedded default.

Owns the store as its callers see it. The two threads with a connection each (one writes, one reads) are in
``store.sqlite_lane``, what is said to SQLite in ``store.sqlite_sql``, ``store.sqlite_writes`` and their neighbours,
hints of other processes in ``store.sqlite_hints``. Other processes of the machine may use the same file. Database time
is the machine's clock.
"""

import sqlite3
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from events.envelope import StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from store import sqlite_sql as sql
from store import sqlite_writes as writes
from store.auditing import EventPlace
from store.clock import Clock, wall_clock
from store.contract import (
    FEED_START,
    Append,
    Appended,
    AppendResult,
    CommandRecord,
    DueChat,
    FeedEvent,
    FeedPosition,
    Header,
    Heartbeat,
    Hint,
    LoadedHeader,
    NewEvent,
    PartialChunk,
    Segment,
)
from store.errors import StoreUnavailable
from store.failpoints import reach
from store.feed import follow
from store.lifecycle import Reentrant, not_open
from store.listing import name_damaged
from store.notes import LivingWorker, RefusalNote, WorkerNote
from store.notify import Bus, Subscription
from store.query import ChatQuery
from store.rules import check_append, check_import, hint_of
from store.schema import READER_LEVEL
from store.sqlite_due import find_due
from store.sqlite_feed import feed_end, read_feed, read_places
from store.sqlite_file import Place, open_for_reading, open_for_writing
from store.sqlite_hints import Poller
from store.sqlite_lane import ReadLane, WriteLane
from store.urls import parse_sqlite

_PAGE: Final = 500
"""Blobs deleted at once: appends wait for no more."""

_buses: WeakValueDictionary[Path, Bus] = WeakValueDictionary()
_buses_lock = threading.Lock()


def _bus_of(path: Path) -> Bus:
    """Return the bus that all stores of this process share for one file."""
    with _buses_lock:
        return _buses.setdefault(path.resolve(), Bus())


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
        self._lanes: tuple[WriteLane, ReadLane] | None = None
        self._poller: Poller | None = None
        self._bus = Bus()
        self._place: Place | None = None
        self.write_level = READER_LEVEL

    async def raise_write_level(self, level: int) -> int:
        """See :meth:`store.contract.Store.raise_write_level`."""
        return await self._writer.write(lambda connection: writes.raise_write_level(connection, level))

    async def _open(self) -> None:
        settings = self._settings
        self._bus = _bus_of(settings.path)
        writer = WriteLane(
            settings.path,
            lambda: open_for_writing(settings, writer.set_up),
            self._bus,
            hint_of=lambda append: hint_of(append.header, self._clock()),
            check=self._check_place,
        )
        lanes = (writer, ReadLane(settings.path, lambda: open_for_reading(settings)))
        try:
            for lane in lanes:
                await lane.run(sql.data_version)
            self.write_level = await writer.run(sql.write_level)
        except BaseException:
            for lane in lanes:
                await lane.close()
            raise
        self._place = Place(settings.path)
        self._poller = Poller(settings, self._clock, self._bus, lanes)
        self._lanes = lanes

    async def _close(self) -> None:
        if self._poller is not None:
            await self._poller.stop()
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
        return await writer.append(append)

    async def import_chat(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        """See :meth:`store.contract.Store.import_chat`."""
        writer = self._writer
        check_import(header, events)
        made = Append(chat=header.chat, expected_version=0, header=header, events=tuple(events), blobs=blobs)
        written = isinstance(await writer.append(made), Appended)
        reach("import.committed")
        return written

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        """See :meth:`store.contract.Store.find_command`."""
        return await self._reader.run(sql.find_command, chat, command)

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        """See :meth:`store.contract.Store.list_chats`."""
        try:
            return await self._reader.run(sql.list_chats, query)
        except StoreUnavailable:
            if query.labels:  # what a header holds in their place may be no JSON
                await name_damaged(self, query)
            raise

    async def list_ids(self, *, after: ChatId | None = None, limit: int = 1000) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.list_ids`."""
        return await self._reader.run(sql.list_ids, after, max(limit, 0))

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """See :meth:`store.contract.Store.get_blobs`."""
        return await self._reader.run(sql.get_blobs, digests)

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """See :meth:`store.contract.Store.delete`."""
        gone = Hint(chat, expected_version + 1, due=False)
        deleted = await self._writer.write(
            lambda connection: writes.delete(connection, chat, expected_version, self._clock()), hint=gone
        )
        reach("delete.committed")
        return deleted

    async def tombstone(self, chat: ChatId) -> bytes | None:
        """See :meth:`store.contract.Store.tombstone`."""
        return await self._reader.run(sql.tombstone, chat)

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        """See :meth:`store.contract.Store.heartbeat`."""

        def beat(connection: sqlite3.Connection) -> tuple[Heartbeat, int]:
            return writes.heartbeat(connection, worker, lease_us, self._clock(), start=start, note=note)

        def judge(connection: sqlite3.Connection, beaten: tuple[Heartbeat, int]) -> tuple[Heartbeat, int]:
            answer, old_expiry = beaten
            if not answer.renewed or (after := self._clock()) < old_expiry:
                return beaten
            # The commit came after the old lease's end: who saw it stale then must stay right.
            with writes.transaction(connection):
                writes.expire(connection, worker, after)
            return Heartbeat(after, renewed=False, peers=sql.peers(connection, after)), old_expiry

        return (await self._writer.write(beat, judge))[0]

    async def list_workers(self) -> Sequence[LivingWorker]:
        """See :meth:`store.contract.Store.list_workers`."""
        return await self._reader.run(sql.list_workers)

    async def note_refusals(self, notes: Sequence[RefusalNote]) -> None:
        """See :meth:`store.contract.Store.note_refusals`."""
        await self._writer.write(lambda connection: writes.note_refusals(connection, notes))

    async def last_refusal(self, chat: ChatId) -> RefusalNote | None:
        """See :meth:`store.contract.Store.last_refusal`."""
        return await self._reader.run(sql.last_refusal, chat)

    async def forget_worker(self, worker: WorkerId) -> None:
        """See :meth:`store.contract.Store.forget_worker`."""
        await self._writer.write(lambda connection: writes.expire(connection, worker, self._clock()))

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.held_by`."""
        return await self._reader.run(sql.held_by, worker)

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        """See :meth:`store.contract.Store.find_due`."""
        return await self._reader.run(find_due, agents, reader_level, limit, self._clock(), exclude)

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        """See :meth:`store.contract.Store.write_partials`."""
        reach("partials.asked")
        kept = await self._writer.write(lambda connection: writes.write_partials(connection, chunks))
        reach("partials.written")
        return kept

    async def read_partials(self, chat: ChatId) -> Sequence[PartialChunk]:
        """See :meth:`store.contract.Store.read_partials`."""
        return await self._reader.run(sql.read_partials, chat)

    async def read_segments(self, chat: ChatId, *, data: bool = True) -> Sequence[Segment]:
        """See :meth:`store.contract.Store.read_segments`."""
        return await self._reader.run(sql.read_segments, chat, data=data)

    async def write_segment(self, segment: Segment, replaces: Sequence[Segment] = ()) -> bool:
        """See :meth:`store.contract.Store.write_segment`."""
        reach("segment.asked")
        written = await self._writer.write(lambda connection: writes.write_segment(connection, segment, replaces))
        reach("segment.written")
        return written

    async def drop_segments(self, chat: ChatId) -> None:
        """See :meth:`store.contract.Store.drop_segments`."""
        await self._writer.write(lambda connection: writes.drop_segments(connection, chat))

    async def rebuild_header(self, header: Header) -> bool:
        """See :meth:`store.contract.Store.rebuild_header`."""
        hint = hint_of(header, self._clock())
        return await self._writer.write(lambda connection: writes.rebuild_header(connection, header), hint=hint)

    async def read_places(self, chat: ChatId, *, after: int = 0, limit: int) -> Sequence[EventPlace]:
        """See :meth:`store.auditing.Auditable.read_places`."""
        return await self._reader.run(read_places, chat, after, limit)

    async def read_uses(self, chat: ChatId) -> frozenset[str]:
        """See :meth:`store.auditing.Auditable.read_uses`."""
        return await self._reader.run(sql.read_uses, chat)

    async def rebuild_uses(self, chat: ChatId, version: int, digests: Sequence[str]) -> bool:
        """See :meth:`store.auditing.Auditable.rebuild_uses`."""
        return await self._writer.write(lambda connection: writes.rebuild_uses(connection, chat, version, digests))

    async def collect_blobs(self) -> int:
        """See :meth:`store.contract.Store.collect_blobs`."""
        collected = 0
        while unused := await self._reader.run(sql.unused_blobs, _PAGE):
            collected += await self._writer.write(partial(writes.drop_unused, digests=unused))
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
        self._require_open()
        async with self._bus.subscribe(chat) as subscription:
            if self._poller is not None:
                await self._poller.start()
            yield subscription

    def _check_place(self) -> None:
        if self._place is not None:
            self._place.check()

    def _require_open(self) -> tuple[WriteLane, ReadLane]:
        if self._lanes is None:
            raise not_open()
        return self._lanes

    @property
    def _writer(self) -> WriteLane:
        return self._require_open()[0]

    @property
    def _reader(self) -> ReadLane:
        return self._require_open()[1]
