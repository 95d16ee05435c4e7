"""Chats kept in memory: for tests and simulation. Gone with the object, but kept while it is closed and opened again.

Nothing here awaits between reading and writing, so every call is atomic on its event loop.
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import takewhile
from operator import attrgetter, itemgetter

import msgspec
from msgspec import Struct

from events.envelope import StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from store.auditing import EventPlace
from store.clock import Clock, wall_clock
from store.contract import (
    FEED_START,
    Append,
    Appended,
    AppendResult,
    CommandRecord,
    Conflict,
    DueChat,
    DueKind,
    DuplicateCommand,
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
from store.due import Candidate, in_turn
from store.errors import FeedMoved
from store.feed import AHEAD, follow
from store.lifecycle import Reentrant, not_open
from store.notes import LivingWorker, RefusalNote, WorkerNote
from store.notify import Bus, Subscription
from store.query import ChatQuery
from store.rules import ERASES, check_append, check_import, hint_of, is_current, ready_at
from store.schema import READER_LEVEL


class _Chat:
    """One chat: header, events by position, and where each command starts."""

    def __init__(self) -> None:
        self.header: Header
        self.events: list[StoredEvent] = []
        self.commands: dict[CommandId, tuple[int, bytes | None]] = {}
        self.partials: dict[tuple[int, int, int], PartialChunk] = {}
        self.segments: dict[tuple[int, int], Segment] = {}
        self.refusal: RefusalNote | None = None

    def add(self, header: Header, events: Iterable[NewEvent]) -> None:
        self.header = header
        for new in events:
            envelope = new.stored.envelope
            self.events.append(new.stored)
            if envelope.index == 0:
                self.commands[envelope.command] = (envelope.version, new.fingerprint or None)

    def erase(self, version: int, content: bytes) -> None:
        self.events[version - 1] = msgspec.structs.replace(self.events[version - 1], content=content)


class _Fed(Struct, frozen=True, gc=False):
    """The events of one transaction in the feed: where the last one stands, and the versions that they have."""

    end: FeedPosition
    chat: ChatId
    first: int
    last: int


class MemoryStore(Reentrant):
    """A store in memory.

    Args:
        clock: Database time, in microseconds UTC.
    """

    def __init__(self, *, clock: Clock = wall_clock) -> None:
        super().__init__()
        self._clock = clock
        self._bus = Bus()
        self._chats: dict[ChatId, _Chat] = {}
        self._blobs: dict[str, bytes] = {}
        self._uses: dict[str, set[ChatId]] = {}
        self._feed: list[_Fed] = []
        self._feed_end = FEED_START
        self._tombstones: dict[ChatId, tuple[bytes, int]] = {}
        self._leases: dict[WorkerId, int] = {}
        self._notes: dict[WorkerId, WorkerNote] = {}
        self._accepting = False
        self.write_level = READER_LEVEL

    async def raise_write_level(self, level: int) -> int:
        """See :meth:`store.contract.Store.raise_write_level`."""
        self._require_open()
        self.write_level = max(self.write_level, level)
        return self.write_level

    async def _open(self) -> None:
        self._accepting = True

    async def _close(self) -> None:
        self._accepting = False

    async def now(self) -> int:
        """See :meth:`store.contract.Store.now`."""
        self._require_open()
        return self._clock()

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        """See :meth:`store.contract.Store.load_header`."""
        self._require_open()
        if (kept := self._chats.get(chat)) is None:
            return None
        now = self._clock()
        return LoadedHeader(header=kept.header, now=now, holder_alive=self._alive(kept.header.holder, now))

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        """See :meth:`store.contract.Store.read_events`."""
        self._require_open()
        if (kept := self._chats.get(chat)) is None:
            return []
        events = kept.events[max(after, 0) : None if upto is None else max(upto, 0)]
        if limit is not None:
            events = events[: max(limit, 0)]
        return events if content else [msgspec.structs.replace(event, content=b"") for event in events]

    async def append(self, append: Append) -> AppendResult:
        """See :meth:`store.contract.Store.append`."""
        self._require_open()
        commands = check_append(append)
        kept = self._chats.get(append.chat)
        if kept is not None and not kept.commands.keys().isdisjoint(commands):
            known = [kept.commands[command] for command in commands if command in kept.commands]
            return DuplicateCommand(*min(known, key=itemgetter(0)))
        version = self._version(append.chat, creates=append.expected_version == 0)
        if version != append.expected_version:
            return Conflict(version)
        self._write(append.header, append.events, append.blobs)
        for version, content in append.erased.items():
            self._chats[append.chat].erase(version, content)
        if append.erased:
            self._chats[append.chat].segments.clear()
        for digest in append.unused_blobs:
            self._release(append.chat, digest)
        if append.drop_partials:
            self._chats[append.chat].partials.clear()
        self._bus.publish([hint_of(append.header, self._clock())])
        return Appended()

    async def import_chat(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        """See :meth:`store.contract.Store.import_chat`."""
        self._require_open()
        check_import(header, events)
        if self._version(header.chat, creates=True):
            return False
        self._write(header, events, blobs)
        self._bus.publish([hint_of(header, self._clock())])
        return True

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        """See :meth:`store.contract.Store.find_command`."""
        self._require_open()
        kept = self._chats.get(chat)
        if kept is None or command not in kept.commands:
            return None
        first, fingerprint = kept.commands[command]
        run = takewhile(lambda event: event.envelope.command == command, kept.events[first - 1 :])
        return CommandRecord(first, first - 1 + sum(1 for _ in run), fingerprint)

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        """See :meth:`store.contract.Store.list_chats`."""
        self._require_open()
        headers = [chat.header for chat in self._chats.values() if _matches(chat.header, query)]
        headers.sort(key=_list_order)
        return headers[: max(query.limit, 0)]

    async def list_ids(self, *, after: ChatId | None = None, limit: int = 1000) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.list_ids`."""
        self._require_open()
        return sorted(chat for chat in self._chats if after is None or chat > after)[: max(limit, 0)]

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """See :meth:`store.contract.Store.get_blobs`."""
        self._require_open()
        return {digest: self._blobs[digest] for digest in digests if digest in self._blobs}

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """See :meth:`store.contract.Store.delete`."""
        self._require_open()
        kept = self._chats.get(chat)
        if kept is None or kept.header.version != expected_version:
            return False
        del self._chats[chat]
        self._tombstones[chat] = (kept.header.digest, kept.header.version)
        self._feed = [fed for fed in self._feed if fed.chat != chat]
        for digest in [digest for digest, users in self._uses.items() if chat in users]:
            self._release(chat, digest)
        self._bus.publish([Hint(chat, expected_version + 1, due=False)])
        return True

    async def tombstone(self, chat: ChatId) -> bytes | None:
        """See :meth:`store.contract.Store.tombstone`."""
        self._require_open()
        stone = self._tombstones.get(chat)
        return None if stone is None else stone[0]

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        """See :meth:`store.contract.Store.heartbeat`."""
        self._require_open()
        now = self._clock()
        renewed = self._alive(worker, now) or (start and worker not in self._leases)
        if renewed:
            self._leases[worker] = now + lease_us
            if start:
                self._notes[worker] = note or WorkerNote()
        return Heartbeat(now, renewed, tuple(sorted(peer for peer, until in self._leases.items() if until > now)))

    async def forget_worker(self, worker: WorkerId) -> None:
        """See :meth:`store.contract.Store.forget_worker`."""
        self._require_open()
        if worker in self._leases:
            self._leases[worker] = min(self._leases[worker], self._clock())

    async def list_workers(self) -> Sequence[LivingWorker]:
        """See :meth:`store.contract.Store.list_workers`."""
        self._require_open()
        leases = sorted(self._leases.items())
        return [LivingWorker(worker=worker, expires_at=until, note=self._notes[worker]) for worker, until in leases]

    async def note_refusals(self, notes: Sequence[RefusalNote]) -> None:
        """See :meth:`store.contract.Store.note_refusals`."""
        self._require_open()
        for note in notes:
            kept = self._chats.get(note.chat)
            if kept is not None and (kept.refusal is None or kept.refusal.at <= note.at):
                kept.refusal = note

    async def last_refusal(self, chat: ChatId) -> RefusalNote | None:
        """See :meth:`store.contract.Store.last_refusal`."""
        self._require_open()
        kept = self._chats.get(chat)
        return kept.refusal if kept is not None else None

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.held_by`."""
        self._require_open()
        headers = [chat.header for chat in self._chats.values()]
        return sorted(header.chat for header in headers if header.holder == worker and not header.foreign)

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        """See :meth:`store.contract.Store.find_due`."""
        self._require_open()
        now = self._clock()
        excluded = set(exclude)
        due: list[Candidate] = []
        for kept in self._chats.values():
            header, ready = kept.header, ready_at(kept.header)
            if ready is None or header.agent not in agents or header.reader_level > reader_level:
                continue
            if header.chat in excluded:
                continue
            kind: DueKind | None = None
            if header.status == "running":
                if header.holder is not None and not self._alive(header.holder, now):
                    kind = "interruption" if header.interrupting else "takeover"
            elif ready <= now or (header.status == "pending" and header.due_at is None):
                kind = "pending" if header.status == "pending" else "expired"
            if kind is not None:
                due.append(Candidate(kind != "interruption", ready, header.chat, kind, header.owner))
        return in_turn(due, limit)

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        """See :meth:`store.contract.Store.write_partials`."""
        self._require_open()
        current: set[ChatId] = set()
        for chunk in chunks:
            if (kept := self._chats.get(chunk.chat)) is not None and is_current(kept.header, chunk):
                kept.partials.setdefault((chunk.history_version, chunk.attempt, chunk.n), chunk)
                current.add(chunk.chat)
        return frozenset(current)

    async def read_partials(self, chat: ChatId) -> Sequence[PartialChunk]:
        """See :meth:`store.contract.Store.read_partials`."""
        self._require_open()
        kept = self._chats.get(chat)
        return [kept.partials[key] for key in sorted(kept.partials)] if kept is not None else []

    async def read_segments(self, chat: ChatId, *, data: bool = True) -> Sequence[Segment]:
        """See :meth:`store.contract.Store.read_segments`."""
        self._require_open()
        kept = self._chats.get(chat)
        segments = sorted(kept.segments.values(), key=_last_version) if kept is not None else []
        return segments if data else [msgspec.structs.replace(segment, data=b"") for segment in segments]

    async def write_segment(self, segment: Segment, replaces: Sequence[Segment] = ()) -> bool:
        """See :meth:`store.contract.Store.write_segment`."""
        self._require_open()
        kept = self._chats.get(segment.chat)
        if kept is None or segment.last_version > kept.header.version:
            return False
        if any(event.envelope.type == ERASES for event in kept.events[segment.last_version :]):
            return False
        for old in replaces:
            kept.segments.pop((old.first_version, old.last_version), None)
        kept.segments.setdefault((segment.first_version, segment.last_version), segment)
        return True

    async def drop_segments(self, chat: ChatId) -> None:
        """See :meth:`store.contract.Store.drop_segments`."""
        self._require_open()
        if (kept := self._chats.get(chat)) is not None:
            kept.segments.clear()

    async def rebuild_header(self, header: Header) -> bool:
        """See :meth:`store.contract.Store.rebuild_header`."""
        self._require_open()
        kept = self._chats.get(header.chat)
        if kept is None or len(kept.events) != header.version:
            return False
        kept.header = header
        self._bus.publish([hint_of(header, self._clock())])
        return True

    async def read_places(self, chat: ChatId, *, after: int = 0, limit: int) -> Sequence[EventPlace]:
        """See :meth:`store.auditing.Auditable.read_places`."""
        self._require_open()
        fed = [each for few in self._feed if few.chat == chat for each in self._events_of(few)]
        own = [(each.stored.envelope, each.position) for each in fed]
        places = [EventPlace(of.version, *at, begins=of.index == 0) for of, at in own if of.version > after]
        return places[:limit]

    async def read_uses(self, chat: ChatId) -> frozenset[str]:
        """See :meth:`store.auditing.Auditable.read_uses`."""
        self._require_open()
        return frozenset(digest for digest, users in self._uses.items() if chat in users)

    async def rebuild_uses(self, chat: ChatId, version: int, digests: Sequence[str]) -> bool:
        """See :meth:`store.auditing.Auditable.rebuild_uses`."""
        self._require_open()
        kept = self._chats.get(chat)
        if kept is None or len(kept.events) != version:
            return False
        for digest in digests:
            if digest in self._blobs:
                self._uses.setdefault(digest, set()).add(chat)
        for digest in await self.read_uses(chat) - set(digests):
            self._uses[digest].discard(chat)
        return True

    async def collect_blobs(self) -> int:
        """See :meth:`store.contract.Store.collect_blobs`."""
        self._require_open()
        unused = [digest for digest in self._blobs if not self._uses.get(digest)]
        for digest in unused:
            del self._blobs[digest]
        return len(unused)

    async def read_feed(self, *, after: FeedPosition, limit: int) -> Sequence[FeedEvent]:
        """See :meth:`store.contract.Store.read_feed`."""
        self._require_open()
        taken: list[FeedEvent] = []
        for fed in self._feed[bisect_right(self._feed, after, key=attrgetter("end")) :]:
            if len(taken) >= limit:
                break
            taken += [event for event in self._events_of(fed) if event.position > after]
        if after > self._feed_end:
            raise FeedMoved(AHEAD)
        return taken

    async def feed_end(self) -> FeedPosition:
        """See :meth:`store.contract.Store.feed_end`."""
        self._require_open()
        return self._feed_end

    def subscribe(self, *, after: FeedPosition = FEED_START) -> AbstractAsyncContextManager[AsyncIterator[FeedEvent]]:
        """See :meth:`store.contract.Store.subscribe`."""
        return follow(self, after)

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[Subscription]:
        """See :meth:`store.contract.Store.hints`."""
        return self._bus.subscribe(chat)

    def _require_open(self) -> None:
        if not self._accepting:
            raise not_open()

    def _alive(self, worker: WorkerId | None, now: int) -> bool:
        return worker is not None and self._leases.get(worker, 0) > now

    def _version(self, chat: ChatId, *, creates: bool) -> int:
        if (kept := self._chats.get(chat)) is not None:
            return kept.header.version
        return self._tombstones[chat][1] if creates and chat in self._tombstones else 0

    def _write(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> None:
        chat = header.chat
        kept = self._chats.get(chat)
        if kept is None:
            kept = self._chats[chat] = _Chat()
        kept.add(header, events)
        tx, place = self._feed_end
        self._feed_end = FeedPosition(tx + 1, place + len(events))
        self._feed.append(_Fed(self._feed_end, chat, header.version - len(events) + 1, header.version))
        for digest, data in blobs.items():
            self._blobs.setdefault(digest, data)
            self._uses.setdefault(digest, set()).add(chat)

    def _events_of(self, fed: _Fed) -> list[FeedEvent]:
        tx, place = fed.end
        events = self._chats[fed.chat].events[fed.first - 1 : fed.last]
        places = range(place - len(events) + 1, place + 1)
        return [FeedEvent(FeedPosition(tx, at), fed.chat, stored) for at, stored in zip(places, events, strict=True)]

    def _release(self, chat: ChatId, digest: str) -> None:
        users = self._uses.get(digest, set())
        users.discard(chat)
        if not users:
            self._uses.pop(digest, None)
            self._blobs.pop(digest, None)


def _matches(header: Header, query: ChatQuery) -> bool:
    return (
        (query.owner is None or header.owner == query.owner)
        and (query.agent is None or header.agent == query.agent)
        and (query.parent is None or header.parent == query.parent)
        and (query.statuses is None or header.status in query.statuses)
        and (query.archived is None or header.archived == query.archived)
        and all(header.labels.get(key) == value for key, value in query.labels.items())
        and (query.before is None or _list_order(header) > (-query.before[0], query.before[1]))
    )


def _last_version(segment: Segment) -> int:
    return segment.last_version


def _list_order(header: Header) -> tuple[int, str]:
    return (-header.listed_at, header.chat)
