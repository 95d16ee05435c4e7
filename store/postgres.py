"""Chats in PostgreSQL: for many workers on many machines.

Owns the log and its header; an append is one statement and one round trip. What stands beside the log is in
``store.postgres_beside``, the life of the store and of its calls in ``store.postgres_calls``, statements in
``store.postgres_sql``, connections in ``store.postgres_pool``, hints in ``store.postgres_hints``.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import psycopg

from events.envelope import StoredEvent
from events.ids import ChatId, CommandId
from store import postgres_keep as keep
from store import postgres_sql as sql
from store.contract import (
    FEED_START,
    Append,
    Appended,
    AppendResult,
    CommandRecord,
    Conflict,
    DuplicateCommand,
    FeedEvent,
    FeedPosition,
    Header,
    Hint,
    LoadedHeader,
    NewEvent,
)
from store.errors import OutcomeUnknown, StoreUnavailable, Unstorable
from store.failpoints import reach
from store.feed import follow
from store.grouping import Group, Spoiled
from store.listing import name_damaged
from store.postgres_beside import Beside, drop_blobs
from store.postgres_calls import fetch
from store.postgres_group import (
    APPEND,
    Outcome,
    batch_outcomes,
    batch_values,
    goes_over_the_line,
    goes_singly,
    lone_outcome,
    lone_statement,
    size_of,
)
from store.postgres_line import Line
from store.postgres_pool import LOCKED, Connection, concerns_all, translation
from store.query import ChatQuery
from store.rows import (
    HEADER_COLUMNS,
    header_of,
)
from store.rules import check_append, check_import, hint_of, is_misplaced
from store.shield import outcome

Row = tuple[Any, ...]

_LAST = 2**63 - 1

_BEHIND = 0.02
"""Seconds after which it is looked again whether older transactions have ended."""


class PostgresStore(Beside):
    """A store in a PostgreSQL database.

    Args:
        url: A ``postgresql://`` URL as libpq takes it; ``pool_size`` in its query bounds the connections (10).

    Raises:
        InvalidStoreUrl: ``pool_size`` is not a whole number from 1.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._group = Group(self._append_batch, self._append, self.start)

    async def _close(self) -> None:
        self._group.end()
        await super()._close()

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        """See :meth:`store.contract.Store.load_header`."""
        rows = await self.read(sql.LOAD, {"chat": chat})
        if not rows:
            return None
        now, alive, ready = rows[0][len(HEADER_COLUMNS) :]
        header = header_of(rows[0])
        return LoadedHeader(header=header, now=now, holder_alive=alive, misplaced=is_misplaced(header, ready))

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
        return [
            sql.read_event(chat, row) for row in await self.read(sql.read_events_statement(content=content), values)
        ]

    async def append(self, append: Append) -> AppendResult:
        """See :meth:`store.contract.Store.append`."""
        self.require_open()
        check_append(append)
        size = size_of(append)
        if goes_over_the_line(append, size):
            return await self._group.add(append, size).outcome()
        return await outcome(self.start(self._append(append)))

    async def import_chat(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        """See :meth:`store.contract.Store.import_chat`."""
        self.require_open()
        check_import(header, events)
        return await outcome(self.start(self._import(header, events, blobs)))

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        """See :meth:`store.contract.Store.find_command`."""
        rows = await self.read(sql.FIND_COMMAND, {"chat": chat, "command": command})
        return CommandRecord(rows[0][0], rows[0][2], rows[0][1]) if rows else None

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        """See :meth:`store.contract.Store.list_chats`."""
        try:
            rows = await self.read(*sql.list_statement(query))
        except Unstorable:
            if query.labels:  # what a header holds in their place is no JSON
                await name_damaged(self, query)
            raise
        return [header_of(row) for row in rows]

    async def list_ids(self, *, after: ChatId | None = None, limit: int = 1000) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.list_ids`."""
        return [row[0] for row in await self.read(sql.LIST_IDS, {"after": after or "", "limit": max(limit, 0)})]

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """See :meth:`store.contract.Store.get_blobs`."""
        return dict(await self.read(sql.GET_BLOBS, {"digests": list(digests)}))

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """See :meth:`store.contract.Store.delete`."""

        async def write(connection: Connection) -> bool:
            async with connection.transaction():
                # First the lock: what was written under another's shows only to a statement that begins after it.
                await connection.execute(keep.LOCK_HEADER, {"chat": chat})
                ((count, blobs),) = await fetch(connection, sql.DELETE, {"chat": chat, "version": expected_version})
                await drop_blobs(connection, blobs)
            return bool(count)

        deleted = await outcome(self.start(self.written(write)))
        if deleted:
            reach("delete.committed")
            self.tell(Hint(chat, expected_version + 1, due=False))
        return deleted

    async def tombstone(self, chat: ChatId) -> bytes | None:
        """See :meth:`store.contract.Store.tombstone`."""
        rows = await self.read(sql.TOMBSTONE, {"chat": chat})
        return bytes(rows[0][0]) if rows else None

    def subscribe(self, *, after: FeedPosition = FEED_START) -> AbstractAsyncContextManager[AsyncIterator[FeedEvent]]:
        """See :meth:`store.contract.Store.subscribe`."""
        return follow(self, after)

    async def _append_batch(self, batch: Sequence[Append]) -> list[Outcome]:
        pool, _ = self.parts()
        line = await pool.line()
        try:
            outcomes = await _over_the_line(line, batch)
        except (UnicodeEncodeError, OverflowError) as error:
            raise Spoiled(translation(error)) from error
        except psycopg.Error as error:
            if not line.is_alive():
                raise OutcomeUnknown(f"the connection was lost: {error}") from error
            lone = len(batch) == 1
            if error.sqlstate in LOCKED or (lone and isinstance(error, psycopg.IntegrityError)):
                return [None] * len(batch)
            if concerns_all(error):
                raise translation(error) from error
            raise Spoiled(translation(error)) from error
        reach("append.committed")
        self.tell(
            *(
                hint_of(append.header, append.events[-1].stored.envelope.recorded_at)
                for append, result in zip(batch, outcomes, strict=True)
                if isinstance(result, Appended)
            )
        )
        return outcomes

    async def _append(self, append: Append) -> AppendResult:
        values = sql.append_values(append)
        statement = sql.append_statement(append)
        # Locked by a statement before: what the writer of a segment or a piece committed meanwhile must be seen.
        locks_first = bool(append.erased) or append.drop_partials

        async def write(connection: Connection) -> AppendResult:
            try:
                async with connection.transaction() if append.unused_blobs or locks_first else nullcontext():
                    if locks_first:
                        await connection.execute(keep.LOCK_HEADER, {"chat": append.chat})
                    result = _result(append, (await fetch(connection, statement, values))[0])
                    if append.unused_blobs and isinstance(result, Appended):
                        unused = {"chat": append.chat, "digests": sorted(append.unused_blobs)}
                        await connection.execute(keep.DROP_USES, unused)
                        await drop_blobs(connection, unused["digests"])
            except psycopg.errors.UniqueViolation:
                result = None
            if result is None:
                # What stopped the append was committed after its snapshot was taken: look again.
                (row,) = await fetch(connection, sql.RECHECK, values)
                result = _result(append, row)
            if result is None:
                raise StoreUnavailable(f"the append to {append.chat!r} broke a constraint; nothing was written")
            return result

        result = await self.written(write)
        if isinstance(result, Appended):
            reach("append.committed")
            self._publish(append.header, append.events)
        return result

    async def _import(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        async def write(connection: Connection) -> bool:
            async with connection.transaction():
                (row,) = await fetch(connection, sql.CREATE, sql.header_values(header))
                if not row[0]:
                    return False
                for batch in sql.batches(events):
                    await connection.execute(sql.INSERT_EVENTS, sql.event_values(header.chat, batch))
                if blobs:
                    await connection.execute(sql.INSERT_BLOBS, sql.blob_values(blobs) | {"chat": header.chat})
            return True

        written = await self.written(write)
        if written:
            reach("import.committed")
            self._publish(header, events)
        return written

    def _publish(self, header: Header, events: Sequence[NewEvent]) -> None:
        self.tell(hint_of(header, events[-1].stored.envelope.recorded_at))


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


async def _over_the_line(line: Line, batch: Sequence[Append]) -> list[Outcome]:
    """Write appends by one statement, in the order of their chats; the outcomes are in the order given."""
    if len(batch) == 1 and goes_singly(batch[0]):
        (row,) = await line.run(*lone_statement(batch[0]))
        return [lone_outcome(batch[0], row)]
    order = sorted(range(len(batch)), key=lambda place: batch[place].chat)
    rows = await line.run(APPEND, batch_values([batch[place] for place in order]))
    outcomes = batch_outcomes(len(batch), rows)
    return [outcomes[at] for at in sorted(range(len(batch)), key=order.__getitem__)]
