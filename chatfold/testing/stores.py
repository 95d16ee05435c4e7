"""Stores that wrap a store: one counts what it is asked, one loses replies.

For tests of what an operation costs and of what it does when the answer to a write never comes. Both keep the contract
of the store inside and may be nested.
"""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Literal, Self, TypeAlias, get_args

from msgspec import Struct

from chatfold.checks import checked_store
from events.envelope import StoredEvent
from events.given import checked_among
from events.ids import ChatId, CommandId, WorkerId
from events.values import checked_whole
from store.auditing import EventPlace
from store.contract import (
    FEED_START,
    Append,
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
    Store,
)
from store.errors import OutcomeUnknown
from store.feed import follow
from store.notes import LivingWorker, RefusalNote, WorkerNote
from store.query import ChatQuery

__all__ = ["CallName", "CountedCall", "CountingStore", "LosingStore", "WrappedStore"]

CallName: TypeAlias = Literal[
    "append",
    "collect_blobs",
    "delete",
    "drop_segments",
    "feed_end",
    "find_command",
    "find_due",
    "forget_worker",
    "get_blobs",
    "heartbeat",
    "held_by",
    "hints",
    "import_chat",
    "last_refusal",
    "list_chats",
    "list_ids",
    "list_workers",
    "load_header",
    "note_refusals",
    "now",
    "raise_write_level",
    "read_events",
    "read_feed",
    "read_partials",
    "read_places",
    "read_segments",
    "read_uses",
    "rebuild_header",
    "rebuild_uses",
    "subscribe",
    "tombstone",
    "write_partials",
    "write_segment",
]
"""A method of a store that does something."""

_CALLS: Final[tuple[CallName, ...]] = get_args(CallName)


class WrappedStore:
    """Passes every call on to another store. Subclasses say what happens :meth:`before` and :meth:`after` each.

    Args:
        inner: The store that does the work, or its URL. It is opened and closed with this one.

    Raises:
        InvalidValue: That is no store.
    """

    def __init__(self, inner: Store | str) -> None:
        self.inner = checked_store(inner, "$.inner")

    def before(self, name: CallName, chat: ChatId | None = None, append: Append | None = None) -> None:
        """Called before a call is passed on; ``append`` is given for appends."""

    def after(self, name: CallName) -> None:
        """Called when a call has taken effect, before its result is returned."""

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.inner.__aexit__(*exc)

    @property
    def write_level(self) -> int:
        """See :attr:`store.contract.Store.write_level`."""
        return self.inner.write_level

    async def raise_write_level(self, level: int) -> int:
        """See :meth:`store.contract.Store.raise_write_level`."""
        self.before("raise_write_level")
        result = await self.inner.raise_write_level(level)
        self.after("raise_write_level")
        return result

    async def now(self) -> int:
        """See :meth:`store.contract.Store.now`."""
        self.before("now")
        result = await self.inner.now()
        self.after("now")
        return result

    async def load_header(self, chat: ChatId) -> LoadedHeader | None:
        """See :meth:`store.contract.Store.load_header`."""
        self.before("load_header", chat)
        result = await self.inner.load_header(chat)
        self.after("load_header")
        return result

    async def read_events(
        self, chat: ChatId, *, after: int = 0, upto: int | None = None, limit: int | None = None, content: bool = True
    ) -> Sequence[StoredEvent]:
        """See :meth:`store.contract.Store.read_events`."""
        self.before("read_events", chat)
        result = await self.inner.read_events(chat, after=after, upto=upto, limit=limit, content=content)
        self.after("read_events")
        return result

    async def append(self, append: Append) -> AppendResult:
        """See :meth:`store.contract.Store.append`."""
        self.before("append", append.chat, append)
        result = await self.inner.append(append)
        self.after("append")
        return result

    async def import_chat(self, header: Header, events: Sequence[NewEvent], blobs: Mapping[str, bytes]) -> bool:
        """See :meth:`store.contract.Store.import_chat`."""
        self.before("import_chat", header.chat)
        result = await self.inner.import_chat(header, events, blobs)
        self.after("import_chat")
        return result

    async def find_command(self, chat: ChatId, command: CommandId) -> CommandRecord | None:
        """See :meth:`store.contract.Store.find_command`."""
        self.before("find_command", chat)
        result = await self.inner.find_command(chat, command)
        self.after("find_command")
        return result

    async def list_chats(self, query: ChatQuery) -> Sequence[Header]:
        """See :meth:`store.contract.Store.list_chats`."""
        self.before("list_chats")
        result = await self.inner.list_chats(query)
        self.after("list_chats")
        return result

    async def list_ids(self, *, after: ChatId | None = None, limit: int = 1000) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.list_ids`."""
        self.before("list_ids")
        result = await self.inner.list_ids(after=after, limit=limit)
        self.after("list_ids")
        return result

    async def get_blobs(self, digests: Sequence[str]) -> Mapping[str, bytes]:
        """See :meth:`store.contract.Store.get_blobs`."""
        self.before("get_blobs")
        result = await self.inner.get_blobs(digests)
        self.after("get_blobs")
        return result

    async def delete(self, chat: ChatId, expected_version: int) -> bool:
        """See :meth:`store.contract.Store.delete`."""
        self.before("delete", chat)
        result = await self.inner.delete(chat, expected_version)
        self.after("delete")
        return result

    async def tombstone(self, chat: ChatId) -> bytes | None:
        """See :meth:`store.contract.Store.tombstone`."""
        self.before("tombstone", chat)
        result = await self.inner.tombstone(chat)
        self.after("tombstone")
        return result

    async def heartbeat(
        self, worker: WorkerId, lease_us: int, *, start: bool = False, note: WorkerNote | None = None
    ) -> Heartbeat:
        """See :meth:`store.contract.Store.heartbeat`."""
        self.before("heartbeat")
        result = await self.inner.heartbeat(worker, lease_us, start=start, note=note)
        self.after("heartbeat")
        return result

    async def forget_worker(self, worker: WorkerId) -> None:
        """See :meth:`store.contract.Store.forget_worker`."""
        self.before("forget_worker")
        await self.inner.forget_worker(worker)
        self.after("forget_worker")

    async def list_workers(self) -> Sequence[LivingWorker]:
        """See :meth:`store.contract.Store.list_workers`."""
        self.before("list_workers")
        result = await self.inner.list_workers()
        self.after("list_workers")
        return result

    async def note_refusals(self, notes: Sequence[RefusalNote]) -> None:
        """See :meth:`store.contract.Store.note_refusals`."""
        self.before("note_refusals")
        await self.inner.note_refusals(notes)
        self.after("note_refusals")

    async def last_refusal(self, chat: ChatId) -> RefusalNote | None:
        """See :meth:`store.contract.Store.last_refusal`."""
        self.before("last_refusal", chat)
        result = await self.inner.last_refusal(chat)
        self.after("last_refusal")
        return result

    async def held_by(self, worker: WorkerId) -> Sequence[ChatId]:
        """See :meth:`store.contract.Store.held_by`."""
        self.before("held_by")
        result = await self.inner.held_by(worker)
        self.after("held_by")
        return result

    async def find_due(
        self, *, agents: Sequence[str], reader_level: int, limit: int, exclude: Sequence[ChatId] = ()
    ) -> Sequence[DueChat]:
        """See :meth:`store.contract.Store.find_due`."""
        self.before("find_due")
        result = await self.inner.find_due(agents=agents, reader_level=reader_level, limit=limit, exclude=exclude)
        self.after("find_due")
        return result

    async def write_partials(self, chunks: Sequence[PartialChunk]) -> frozenset[ChatId]:
        """See :meth:`store.contract.Store.write_partials`."""
        self.before("write_partials")
        result = await self.inner.write_partials(chunks)
        self.after("write_partials")
        return result

    async def read_partials(self, chat: ChatId) -> Sequence[PartialChunk]:
        """See :meth:`store.contract.Store.read_partials`."""
        self.before("read_partials", chat)
        result = await self.inner.read_partials(chat)
        self.after("read_partials")
        return result

    async def read_segments(self, chat: ChatId, *, data: bool = True) -> Sequence[Segment]:
        """See :meth:`store.contract.Store.read_segments`."""
        self.before("read_segments", chat)
        result = await self.inner.read_segments(chat, data=data)
        self.after("read_segments")
        return result

    async def write_segment(self, segment: Segment, replaces: Sequence[Segment] = ()) -> bool:
        """See :meth:`store.contract.Store.write_segment`."""
        self.before("write_segment", segment.chat)
        result = await self.inner.write_segment(segment, replaces)
        self.after("write_segment")
        return result

    async def drop_segments(self, chat: ChatId) -> None:
        """See :meth:`store.contract.Store.drop_segments`."""
        self.before("drop_segments", chat)
        await self.inner.drop_segments(chat)
        self.after("drop_segments")

    async def rebuild_header(self, header: Header) -> bool:
        """See :meth:`store.contract.Store.rebuild_header`."""
        self.before("rebuild_header", header.chat)
        result = await self.inner.rebuild_header(header)
        self.after("rebuild_header")
        return result

    async def read_places(self, chat: ChatId, *, after: int = 0, limit: int) -> Sequence[EventPlace]:
        """See :meth:`store.auditing.Auditable.read_places`."""
        self.before("read_places", chat)
        result = await self.inner.read_places(chat, after=after, limit=limit)
        self.after("read_places")
        return result

    async def read_uses(self, chat: ChatId) -> frozenset[str]:
        """See :meth:`store.auditing.Auditable.read_uses`."""
        self.before("read_uses", chat)
        result = await self.inner.read_uses(chat)
        self.after("read_uses")
        return result

    async def rebuild_uses(self, chat: ChatId, version: int, digests: Sequence[str]) -> bool:
        """See :meth:`store.auditing.Auditable.rebuild_uses`."""
        self.before("rebuild_uses", chat)
        result = await self.inner.rebuild_uses(chat, version, digests)
        self.after("rebuild_uses")
        return result

    async def collect_blobs(self) -> int:
        """See :meth:`store.contract.Store.collect_blobs`."""
        self.before("collect_blobs")
        result = await self.inner.collect_blobs()
        self.after("collect_blobs")
        return result

    async def read_feed(self, *, after: FeedPosition, limit: int) -> Sequence[FeedEvent]:
        """See :meth:`store.contract.Store.read_feed`."""
        self.before("read_feed")
        result = await self.inner.read_feed(after=after, limit=limit)
        self.after("read_feed")
        return result

    async def feed_end(self) -> FeedPosition:
        """See :meth:`store.contract.Store.feed_end`."""
        self.before("feed_end")
        result = await self.inner.feed_end()
        self.after("feed_end")
        return result

    def subscribe(self, *, after: FeedPosition = FEED_START) -> AbstractAsyncContextManager[AsyncIterator[FeedEvent]]:
        """See :meth:`store.contract.Store.subscribe`. Its reads and hints are this store's."""
        self.before("subscribe")
        return follow(self, after)

    def hints(self, chat: ChatId | None = None) -> AbstractAsyncContextManager[AsyncIterator[Hint]]:
        """See :meth:`store.contract.Store.hints`."""
        self.before("hints")
        return self.inner.hints(chat)


class CountedCall(Struct, frozen=True):
    """One call: its name, the chat it was about, and for an append the types of its events and the commands that start.

    ``commands`` are ids at index 0, in order.
    """

    name: CallName
    chat: ChatId | None = None
    commands: tuple[CommandId, ...] = ()
    events: tuple[str, ...] = ()


class CountingStore(WrappedStore):
    """Writes down every call, those that are refused too.

    Attributes:
        calls: The calls so far, in the order in which they were made.
    """

    def __init__(self, inner: Store | str) -> None:
        super().__init__(inner)
        self.calls: list[CountedCall] = []

    def before(self, name: CallName, chat: ChatId | None = None, append: Append | None = None) -> None:
        """Write a call down."""
        envelopes = [new.stored.envelope for new in append.events] if append is not None else []
        commands = tuple(envelope.command for envelope in envelopes if envelope.index == 0)
        self.calls.append(CountedCall(name, chat, commands, tuple(envelope.type for envelope in envelopes)))

    def count(self, name: CallName, chat: ChatId | None = None) -> int:
        """Return how often a method was called, about ``chat`` if one is given.

        Raises:
            InvalidValue: A store has no such method.
        """
        checked_among(name, _CALLS, "$.name")
        return sum(1 for call in self.calls if call.name == name and chat in {None, call.chat})

    def counts(self) -> Counter[CallName]:
        """Return how often each method was called."""
        return Counter(call.name for call in self.calls)

    def forget(self) -> None:
        """Begin to count anew."""
        self.calls.clear()


class LosingStore(WrappedStore):
    """Loses the replies of calls on demand: the call takes effect, its caller learns nothing."""

    def __init__(self, inner: Store | str) -> None:
        super().__init__(inner)
        self._to_lose: Counter[str] = Counter()
        self.lost = 0

    def lose(self, name: CallName | Literal["any"] = "append", times: int = 1) -> None:
        """Lose the replies of the next ``times`` calls of one method, or of whichever come next.

        Raises:
            InvalidValue: A store has no such method, or there are no such times.
        """
        self._to_lose[checked_among(name, ("any", *_CALLS), "$.name")] += checked_whole(times, "$.times")

    def after(self, name: CallName) -> None:
        """Lose the reply, if that is due.

        Raises:
            OutcomeUnknown: The reply is lost.
        """
        for key in (name, "any"):
            if self._to_lose[key] > 0:
                self._to_lose[key] -= 1
                self.lost += 1
                raise OutcomeUnknown(f"the reply of {name} was lost on purpose")
