"""What the PostgreSQL back end has beside the log: leases, due chats, partials, segments, blobs, refusals, the feed."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from events.ids import ChatId, WorkerId
from store import postgres_keep as keep
from store import postgres_sql as sql
from store.auditing import EventPlace
from store.contract import DueChat, FeedEvent, FeedPosition, Header, Heartbeat, PartialChunk, Segment
from store.due import OWNERS, Candidate, in_turn, window
from store.errors import FeedMoved
from store.failpoints import reach
from store.feed import AHEAD, fed, until_damage
from store.notes import LivingWorker, RefusalNote, WorkerNote
from store.postgres_calls import Calls, fetch
from store.postgres_due import FIND_DUE, FIRSTS
from store.postgres_feed import LINE, NEWEST, PLACES, READ_FEED
from store.postgres_pool import Connection
from store.rows import (
    event_place,
    note_bytes,
    partial_of,
    refusal_note,
    segment_of,
    worker_note,
)
from store.rules import hint_of
from store.shield import outcome

Row = tuple[Any, ...]

_LAST = 2**63 - 1

_BEHIND = 0.02
"""Seconds after which it is looked again whether older transactions have ended."""


class Beside(Calls):
    """The part of ``PostgresStore`` that is not about the log and its header."""

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        """See :meth:`store.contract.Store.heartbeat`."""
        before = time.monotonic_ns()
        values = {"worker": worker, "lease": lease_us, "note": note_bytes(note)}
        rows = await self.read(keep.START if start else keep.RENEW, values, "heartbeats")
        now, renewed, old_expiry, peers = rows[0]
        took = (time.monotonic_ns() - before) // 1000
        if renewed and old_expiry is not None and took >= old_expiry - now:
            # The commit may have come after the old lease's end: who saw it stale then must stay right.
            await self.forget_worker(worker)
            return Heartbeat(now, renewed=False, peers=tuple(sorted(set(peers) - {worker})))
        # What the statement itself wrote it does not see.
        alive = {*peers, worker} if renewed else set(peers)
        return Heartbeat(now, bool(renewed), tuple(sorted(alive)))

    async def forget_worker(self, worker: WorkerId) -> None:
        """See :meth:`store.contract.Store.forget_worker`."""
        await self.read(keep.EXPIRE, {"worker": worker})

    async def list_workers(self) -> Sequence[LivingWorker]:
        """See :meth:`store.contract.Store.list_workers`."""
        rows = await self.read(keep.WORKERS, {})
        return [LivingWorker(worker=row[0], expires_at=row[1], note=worker_note(row[2])) for row in rows]

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.held_by`."""
        return [row[0] for row in await self.read(sql.HELD_BY, {"worker": worker})]

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        """See :meth:`store.contract.Store.find_due`."""
        if limit <= 0:
            return []
        values = {
            "agents": list(agents),
            "level": reader_level,
            "exclude": list(exclude),
            "window": window(limit),
            "owners": OWNERS,
        }
        found = await self.read(FIND_DUE, values)
        if sum(row[3] == "pending" for row in found) == window(limit):
            found += await self.read(FIRSTS, values)
        return in_turn((Candidate(*row) for row in found), limit)

    async def note_refusals(self, notes: Sequence[RefusalNote]) -> None:
        """See :meth:`store.contract.Store.note_refusals`."""
        await self.read(keep.NOTE_REFUSALS, keep.refusal_values(notes))

    async def last_refusal(self, chat: ChatId) -> RefusalNote | None:
        """See :meth:`store.contract.Store.last_refusal`."""
        rows = await self.read(keep.LAST_REFUSAL, {"chat": chat})
        return refusal_note(rows[0][0]) if rows else None

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        """See :meth:`store.contract.Store.write_partials`."""
        reach("partials.asked")
        rows = await self.read(keep.WRITE_PARTIALS, keep.partial_values(chunks)) if chunks else []
        reach("partials.written")
        return frozenset(ChatId(row[0]) for row in rows)

    async def read_partials(self, chat: ChatId) -> Sequence[PartialChunk]:
        """See :meth:`store.contract.Store.read_partials`."""
        return [partial_of(row) for row in await self.read(keep.READ_PARTIALS, {"chat": chat})]

    async def read_segments(self, chat: ChatId, *, data: bool = True) -> Sequence[Segment]:
        """See :meth:`store.contract.Store.read_segments`."""
        rows = await self.read(keep.READ_SEGMENTS if data else keep.LIST_SEGMENTS, {"chat": chat})
        return [segment_of(row) for row in rows]

    async def write_segment(self, segment: Segment, replaces: Sequence[Segment] = ()) -> bool:
        """See :meth:`store.contract.Store.write_segment`."""
        values = keep.segment_values(segment, replaces)

        async def write(connection: Connection) -> bool:
            async with connection.transaction():
                if not await fetch(connection, keep.LOCK_FOR_SEGMENT, values):
                    return False
                return bool((await fetch(connection, keep.WRITE_SEGMENT, values))[0][0])

        reach("segment.asked")
        written = await outcome(self.start(self.written(write)))
        reach("segment.written")
        return written

    async def drop_segments(self, chat: ChatId) -> None:
        """See :meth:`store.contract.Store.drop_segments`."""
        await self.read(keep.DROP_SEGMENTS, {"chat": chat})

    async def rebuild_header(self, header: Header) -> bool:
        """See :meth:`store.contract.Store.rebuild_header`."""
        values = sql.header_values(header)
        written = await self._rebuild(header.chat, header.version, keep.REBUILD_HEADER, values)
        if written:
            self.tell(hint_of(header, header.updated_at))
        return written

    async def read_places(self, chat: ChatId, *, after: int = 0, limit: int) -> Sequence[EventPlace]:
        """See :meth:`store.auditing.Auditable.read_places`."""
        rows = await self.read(PLACES, {"chat": chat, "after": after, "limit": limit})
        return [event_place(chat, row) for row in rows]

    async def read_uses(self, chat: ChatId) -> frozenset[str]:
        """See :meth:`store.auditing.Auditable.read_uses`."""
        return frozenset(row[0] for row in await self.read(keep.READ_USES, {"chat": chat}))

    async def rebuild_uses(self, chat: ChatId, version: int, digests: Sequence[str]) -> bool:
        """See :meth:`store.auditing.Auditable.rebuild_uses`."""
        return await self._rebuild(chat, version, keep.REBUILD_USES, {"chat": chat, "digests": sorted(digests)})

    async def _rebuild(self, chat: ChatId, version: int, statement: str, values: Mapping[str, Any]) -> bool:
        """Write what is made of a chat's log anew, if the log still ends at ``version``; return whether it does."""

        async def write(connection: Connection) -> bool:
            async with connection.transaction():
                await connection.execute(keep.LOCK_HEADER, {"chat": chat})
                last = await fetch(connection, keep.LAST_VERSION, {"chat": chat})
                if [version] != [row[0] for row in last]:
                    return False
                await connection.execute(statement, values)
            return True

        return await outcome(self.start(self.written(write)))

    async def collect_blobs(self) -> int:
        """See :meth:`store.contract.Store.collect_blobs`."""

        async def write(connection: Connection) -> int:
            async with connection.transaction():
                unused = await fetch(connection, keep.UNUSED_BLOBS, {})
                return await drop_blobs(connection, [row[0] for row in unused])

        collected = 0
        while count := await outcome(self.start(self.written(write))):
            collected += count
        return collected

    async def read_feed(self, *, after: FeedPosition, limit: int) -> Sequence[FeedEvent]:
        """See :meth:`store.contract.Store.read_feed`."""
        if limit <= 0:
            return []
        rows = await self.read(READ_FEED, {"tx": after.tx, "position": after.position, "limit": limit})
        if not rows:
            await self._check_feed(after)
        return until_damage(
            fed(FeedPosition(row[0], row[1]), row[2], partial(sql.read_event, row[2], row[3:])) for row in rows
        )

    async def _check_feed(self, after: FeedPosition) -> None:
        ((end, newest),) = await self.read(NEWEST, {})
        if newest >= end:
            raise FeedMoved("the feed has events of another server's transactions (run `chatfold migrate`)")
        if after.tx >= end:
            raise FeedMoved(AHEAD)

    async def feed_end(self) -> FeedPosition:
        """See :meth:`store.contract.Store.feed_end`."""
        ((oldest, end),) = await self.read(LINE, {})
        while oldest < end:
            await asyncio.sleep(_BEHIND)
            ((oldest, _),) = await self.read(LINE, {})
        return FeedPosition(end - 1, _LAST)


async def drop_blobs(connection: Connection, digests: Sequence[str]) -> int:
    """Delete those of some blobs that no chat uses; return how many. Within a transaction."""
    if not digests:
        return 0
    await connection.execute(keep.LOCK_BLOBS, {"digests": list(digests)})
    return (await connection.execute(keep.DROP_BLOBS, {"digests": list(digests)})).rowcount
