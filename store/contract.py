"""The contract of a store: what a back end keeps and promises. One shared test class holds every back end to it.

A store keeps bytes and compares versions; it knows no rule of the machine. What an append means is decided above it
(``store.append``): load, decide, append under the version that was loaded, and again from the start on a conflict.

Promises of every back end:

- An append is atomic and durable when ``append`` returns: header, events, blobs and erased contents, or nothing.
- It takes effect only if the chat's version is ``expected_version`` (0: the chat must not exist) and its command id is
  new.
- ``now`` is database time in microseconds UTC, ``holder_alive`` was judged by it. A lease that was seen stale never
  becomes fresh again, so a judgement "dead" stays true; a judgement "alive" may not.
- Hints go out after commit, best effort: one may be lost, doubled or late, and none is sent for an append that did not
  commit.
- An append that was handed over is never cancelled half-way: a cancelled caller first waits for its outcome.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Literal, NamedTuple, Protocol, Self, TypeAlias

from msgspec import Struct

from events.control import retention_of
from events.envelope import Status, StoredEvent
from events.ids import ChatId, CommandId, WorkerId
from store.auditing import Auditable
from store.notes import LivingWorker, RefusalNote, WorkerNote
from store.query import ChatQuery


class Header(Struct, frozen=True, kw_only=True, gc=False):
    """The header row of a chat: control as bytes, and the columns that queries need, all derived from the fold.

    ``due_at``: microseconds UTC from which a pending chat may be acquired, or at which a requires_action chat expires;
    None in other statuses. ``attempt``: the attempt that runs, if one does. ``digest`` is the chain's value at
    ``version``. ``foreign``: never acquired, no deadline fires. ``reader_level``: the lowest release level that may run
    the chat. ``listed_at`` is what lists are ordered by: ``updated_at``, but while a chat runs it stays as it was when
    the chat began to, so that the steps of a turn move no index.
    """

    chat: ChatId
    owner: str
    agent: str
    status: Status
    interrupting: bool
    archived: bool
    queued: int
    version: int
    history_version: int
    queue_version: int
    epoch: int
    holder: WorkerId | None
    due_at: int | None
    created_at: int
    updated_at: int
    listed_at: int
    control: bytes
    digest: bytes
    attempt: int | None = None
    title: str | None = None
    labels: dict[str, str] = {}
    parent: ChatId | None = None
    pinned: bool = False
    foreign: bool = False
    reader_level: int = 1

    @property
    def expires_at(self) -> int | None:
        """When the chat's retention runs out, microseconds UTC: its time, counted from ``updated_at``; None: never.

        Raises:
            MalformedEvent: ``control`` is not as it was written.
        """
        kept = retention_of(self.control)
        return None if kept is None else self.updated_at + kept


class LoadedHeader(Struct, frozen=True, kw_only=True, gc=False):
    """A header as read, with database time and whether the holder's lease lives (False without a holder).

    ``misplaced``: its row says otherwise than the header when the chat wants a worker, so that none finds it.
    """

    header: Header
    now: int
    holder_alive: bool
    misplaced: bool = False


class NewEvent(Struct, frozen=True, kw_only=True, gc=False):
    """An event to append.

    ``fingerprint`` identifies the command's content; only the event at index 0 carries one. An empty one is none.
    """

    stored: StoredEvent
    fingerprint: bytes | None = None


class Append(Struct, frozen=True, kw_only=True, gc=False):
    """One atomic write to one chat.

    ``header`` is the row after the events. ``blobs`` maps SHA-256 (hex) to bytes: every blob that the events refer to.
    ``erased`` maps versions to the content bytes that replace theirs; all segments of the chat go with them, and of
    ``unused_blobs`` (blobs that no event of the chat refers to any more) those that no other chat uses.
    ``drop_partials``: the append ends an attempt, so the chat's partials go. ``expected_version`` 0 creates the chat.
    ``events`` have consecutive versions from ``expected_version + 1``.
    """

    chat: ChatId
    expected_version: int
    header: Header
    events: tuple[NewEvent, ...]
    blobs: Mapping[str, bytes] = {}
    erased: Mapping[int, bytes] = {}
    unused_blobs: frozenset[str] = frozenset()
    drop_partials: bool = False


class Appended(Struct, frozen=True):
    """The append took effect."""


class Conflict(Struct, frozen=True):
    """Nothing was written: the chat is at another version (0: it does not exist).

    A create that meets a tombstone gets the version that the deleted chat had, so it differs from the one expected.
    """

    version: int


class DuplicateCommand(Struct, frozen=True):
    """Nothing was written: the command id is in the log already. See :meth:`Store.find_command`.

    Said rather than a conflict where both hold, so that a repeated command is known whatever happened since.
    """

    version: int
    fingerprint: bytes | None


AppendResult: TypeAlias = Appended | Conflict | DuplicateCommand


class CommandRecord(Struct, frozen=True):
    """Where a command stands in the log: its first and last version, and its fingerprint."""

    first: int
    last: int
    fingerprint: bytes | None


DueKind: TypeAlias = Literal["pending", "takeover", "interruption", "expired"]
"""Why a chat wants a worker. See :class:`DueChat`."""


class DueChat(Struct, frozen=True):
    """A chat that wants a worker.

    ``pending``: acquire it; ``takeover``: its holder is dead; ``interruption``: the same, and the turn must be brought
    to an end, whatever the worker's capacity; ``expired``: let its action expire.
    """

    chat: ChatId
    kind: DueKind
    owner: str = ""


class Heartbeat(Struct, frozen=True):
    """Outcome of a heartbeat: database time, whether the lease was still fresh and is renewed, and who else is alive.

    ``peers``: all workers whose lease lives, this one among them if it was renewed, sorted.
    """

    now: int
    renewed: bool
    peers: tuple[WorkerId, ...] = ()


class PartialChunk(Struct, frozen=True, kw_only=True):
    """A piece of an answer that is not committed yet: number ``n`` (from 0) of one attempt on one history.

    ``epoch`` is that of the holder who writes it.
    """

    chat: ChatId
    epoch: int
    history_version: int
    attempt: int
    n: int
    data: bytes


class Segment(Struct, frozen=True, kw_only=True):
    """A piece of a transcript as it stood at ``last_version``: a cache, written once, made from the log.

    It holds ``count`` messages from position ``start`` of history on, and continues the segment whose ``last_version``
    is ``first_version`` - 1 (the first one of a chain begins at version 1, with ``start`` 0). ``schema`` says how
    ``data`` is to be read; ``digest`` is the log's chain at ``last_version``. What is in ``data`` is
    ``store.segments``' matter.
    """

    chat: ChatId
    first_version: int
    last_version: int
    start: int
    count: int
    schema: int
    digest: bytes
    data: bytes


class FeedPosition(NamedTuple):
    """A place in the feed of all chats' events: the transaction, and the event within all of the database's."""

    tx: int
    position: int

    @property
    def cursor(self) -> str:
        """The position as the text that consumers keep."""
        return f"{self.tx}-{self.position}"


FEED_START: Final = FeedPosition(0, 0)
"""Before the first event."""


class FeedEvent(Struct, frozen=True, gc=False):
    """An event of some chat, and its place in the feed."""

    position: FeedPosition
    chat: ChatId
    stored: StoredEvent


class Hint(Struct, frozen=True, gc=False):
    """A chat changed: re-read it if ``version`` is newer than what you know. ``due``: it may want a worker now."""

    chat: ChatId
    version: int
    due: bool


class Store(Auditable, Protocol):
    """A place where chats are kept. Open it as an async context manager."""

    async def __aenter__(self) -> Self:
        """Open: connect, and check that the schema is the one that this release needs.

        Raises:
            SchemaOutdated: The database needs ``chatfold migrate`` (a new SQLite file or an empty database is set up at
                once).
            StoreUnavailable: The database cannot be reached.
        """
        ...

    async def __aexit__(self, *exc: object) -> None:
        """Close: wait for appends under way, and release connections and threads.

        A store that was entered more than once is closed by the last exit, and may then be entered again.
        """
        ...

    @property
    def write_level(self) -> int:
        """The level at which new chats are written, as it was when the store was opened. See ``store.schema``."""
        ...

    async def raise_write_level(self, level: int) -> int:
        """Raise the level at which processes that open the store from now on write; it is never lowered.

        Returns:
            The level in force.
        """
        ...

    async def now(self) -> int:
        """Return database time in microseconds UTC."""
        ...

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        """Return the header of ``chat`` by one keyed read, or None if there is no such chat.

        Raises:
            MalformedRow: It is not as it was written.
        """
        ...

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        """Return events with ``after`` < version <= ``upto``, at most ``limit``, without content on request.

        Raises:
            MalformedRow: One is not as it was written.
        """
        ...

    async def append(self, append: Append) -> AppendResult:
        """Write, or say why not. A hint follows the commit.

        Raises:
            OutcomeUnknown: The connection was lost before the reply; read :meth:`find_command` to learn the outcome.
            StoreUnavailable: Nothing was written.
            MalformedAppend: The append contradicts itself.
            Unstorable: A value cannot be kept exactly.
        """
        ...

    async def import_chat(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        """Write a whole log as a new chat in one transaction; False if the chat exists or existed."""
        ...

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        """Return where ``command`` stands in the log of ``chat``, or None if it is not there."""
        ...

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        """Return headers that match ``query``.

        Raises:
            MalformedRow: A header is not as it was written. :meth:`list_ids` still tells which chats there are.
        """
        ...

    async def list_ids(self, *, after: ChatId | None = None, limit: int = 1000) -> Sequence[ChatId]:
        """Return ids of chats in an order that never changes, those behind ``after``; no other column is read."""
        ...

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """Return the blobs among ``digests`` that are kept."""
        ...

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """Delete a chat's rows and leave a tombstone with its last digest; False on another version.

        Segments and partials go too, and its blobs, but for those that other chats use. A hint follows.
        """
        ...

    async def tombstone(self, chat: ChatId) -> bytes | None:
        """Return the last digest of a deleted chat, or None. A tombstone's id is never used again: create conflicts."""
        ...

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        """Renew the lease of ``worker`` for ``lease_us`` microseconds; ``start`` writes the first row, with ``note``.

        Only a fresh row is renewed: a stale or missing one stays as it is, and the worker must come back under a new
        id.
        """
        ...

    async def forget_worker(self, worker: WorkerId) -> None:
        """Drop the lease of ``worker`` at once."""
        ...

    async def list_workers(self) -> Sequence[LivingWorker]:
        """Return the leases that are kept, those that ended of late too, by worker."""
        ...

    async def note_refusals(self, notes: Sequence[RefusalNote]) -> None:
        """Keep the newest refusal of each chat, best effort; those of chats that are not there are dropped."""
        ...

    async def last_refusal(self, chat: ChatId) -> RefusalNote | None:
        """Return the last refusal that was noted for ``chat``; deleting the chat deletes it."""
        ...

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        """Return the chats whose header names ``worker`` as the holder, foreign ones left out: nobody holds those."""
        ...

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        """Return at most ``limit`` chats that want a worker now, oldest due first, none of ``exclude``.

        Owners are served in turn: each one's oldest chat before anybody's second.
        Interruptions (a running, interrupting chat with a dead holder) come first; expiries and takeovers of any agent
        named; foreign chats and chats above ``reader_level`` never. Those that another process is writing to may be
        passed over. A pending chat without ``due_at`` wants one whatever its times say: the clock may have been put
        back since.
        """
        ...

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        """Keep pieces of answers under way, best effort, and return the chats whose pieces are kept.

        Only those whose chat's header still shows their epoch, history and attempt are kept; those of a chat that is
        being written to at this moment may be passed over. A chunk that is there already stays as it is.
        """
        ...

    async def read_partials(self, chat: ChatId) -> Sequence[PartialChunk]:
        """Return what is kept of answers of ``chat``, by history, attempt and number."""
        ...

    async def read_segments(self, chat: ChatId, *, data: bool = True) -> Sequence[Segment]:
        """Return the segments of ``chat`` by ``last_version``; with empty ``data`` on request."""
        ...

    async def write_segment(self, segment: Segment, replaces: Sequence[Segment] = ()) -> bool:
        """Write a segment, in place of others that history has left behind; repeating it changes nothing.

        Returns:
            Whether it was written; not where the chat is gone, where content was erased since ``last_version``, or
            where the chat is being written to at this moment.
        """
        ...

    async def drop_segments(self, chat: ChatId) -> None:
        """Delete all segments of ``chat``: the log has all that they hold."""
        ...

    async def rebuild_header(self, header: Header) -> bool:
        """Write ``header`` in place of whatever its row holds, for repair.

        Returns:
            Whether it was written; not where the log of the chat does not end at ``header.version``.
        """
        ...

    async def collect_blobs(self) -> int:
        """Delete blobs that no chat uses, such as a process that died may have left; return how many."""
        ...

    async def read_feed(self, *, after: FeedPosition, limit: int) -> Sequence[FeedEvent]:
        """Return the next events of all chats behind ``after``, at most about ``limit``, in the feed's order.

        Only events are returned before which none can appear any more: a transaction that is still under way holds back
        those that came after it began. Events of one chat come in the order of their versions. The events of one append
        come together.

        Raises:
            FeedEventUnreadable: The first event behind ``after`` cannot be read. Those before such a one are returned.
            FeedMoved: Nothing is behind ``after``, and it is ahead of the database; or events are that another server
                wrote, whose transactions this one has yet to count up to.
        """
        ...

    async def feed_end(self) -> FeedPosition:
        """Return a position behind all events that were committed before this call was made.

        Events whose writing begins once it has returned come behind that position. It waits for writes that were under
        way when it was called: they stand before it.
        """
        ...

    def subscribe(self, *, after: FeedPosition = FEED_START) -> AbstractAsyncContextManager[AsyncIterator[FeedEvent]]:
        """Return the events of all chats behind ``after``, and then all that come, each once and in the feed's order.

        Whoever keeps the position of the last event that it took, together with what it made of it, sees each committed
        event exactly once, also when many writers commit out of order, and after restarts.

        Raises:
            FeedEventUnreadable: An event cannot be read; raised by the iterator once all before it were given, and ends
                it. A subscription after the error's ``position`` goes on behind that event.
        """
        ...

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """Return a subscription to hints of all processes, from the moment it is entered; on request to one chat's."""
        ...
