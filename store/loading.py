"""Loading a chat: its control by one keyed read, or its whole state from its segments and the events after them.

A state that was loaded through segments is the fold of the log: where anything tells that it is not, the segments are
left aside and the whole log is folded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from chatstate.classify import X
from chatstate.errors import ChatNotFound
from events.codec import decode_each
from events.contentlist import content_blobs
from events.control import decode_control, encode_control
from events.envelope import Recorded, StoredEvent
from events.ids import ChatId
from events.reducer import fold
from events.state import ChatState
from events.transcript import TranscriptMessage
from store.contract import Header, Segment, Store
from store.errors import MalformedRow
from store.log import get_logger
from store.segments import UnfitSegment, check_chain, newest_chain, open_segment, read_messages, read_state

_log = get_logger(__name__)
_T = TypeVar("_T")

PAGE = 1000
"""Events read at once."""

TAIL: Final = 256
"""Events without a segment that a chat may have: as many are folded in a few milliseconds. Younger chats have none."""


class LoadedChat(Struct, frozen=True, kw_only=True, gc=False):
    """A chat at a version: its state, its header, and what the database's clock said when it was read.

    ``now`` is microseconds UTC. ``holder_alive``: the holder's lease lived then (False without a holder).
    ``header.control`` is empty where this process wrote it and has the transcript: ``state`` holds what it says.
    """

    state: ChatState
    header: Header
    now: int
    holder_alive: bool

    def with_transcript(self, state: ChatState) -> LoadedChat:
        """Return the chat, to be kept, with its whole state that ``load_state`` gave in place of control alone."""
        state.messages.shrink()
        return replace(self, state=state, header=replace(self.header, control=b""))

    @property
    def lease_dead(self) -> bool:
        """Whether the chat has a holder and its lease is dead; once true it stays true for this holder."""
        return self.header.holder is not None and not self.holder_alive


def must_be_there(found: _T | None, what: str, chat: str) -> _T:
    """Return what was found of a chat, for ``what``, which is asked of chats that are there.

    Raises:
        ChatNotFound: Nothing was found.
    """
    if found is None:
        raise ChatNotFound(what, X.N, f"there is no chat {chat}")
    return found


async def load_chat(store: Store, chat: ChatId, *, transcript: bool) -> LoadedChat | None:
    """Return the chat, or None if there is none.

    Args:
        store: Where it is kept.
        chat: Which.
        transcript: Whether to load the transcript too; without it one keyed read gives control.
    """
    loaded = await store.load_header(chat)
    if loaded is None:
        return None
    if transcript:
        state = await load_state(store, loaded.header)
    else:
        state = ChatState(control=decode_control(loaded.header.control), transcript=None)
    return LoadedChat(state=state, header=loaded.header, now=loaded.now, holder_alive=loaded.holder_alive)


async def load_state(store: Store, header: Header) -> ChatState:
    """Return the state of a chat, transcript included, at the version of ``header``: what its log folds to.

    Two reads where there are segments (and one of large contents), else one for each page of the log.
    """
    if header.version >= TAIL:
        state = await _from_segments(store, header)
        if state is not None:
            return state
    return fold(await read_recorded(store, header.chat, upto=header.version))


async def _from_segments(store: Store, header: Header) -> ChatState | None:
    """Return the state by way of segments; None where there are none that fit."""
    try:
        chain = newest_chain(await store.read_segments(header.chat), header.version)
    except MalformedRow as error:
        _log.warning("segments_ignored", chat=header.chat, version=header.version, error=str(error))
        return None
    if not chain:
        return None
    # The event at the segment's own version comes along for its digest.
    events = await read_stored(store, header.chat, after=chain[-1].last_version - 1, upto=header.version)
    try:
        state = await open_chain(store, chain, events[0].digest if events else None, events[1:])
    except UnfitSegment as error:
        _log.warning("segments_ignored", chat=header.chat, version=chain[-1].last_version, error=str(error))
        return None
    if encode_control(state.control) != header.control:
        _log.warning("segments_ignored", chat=header.chat, version=header.version, error="control is not the header's")
        return None
    return state


async def open_chain(
    store: Store, chain: Sequence[Segment], digest: bytes | None, tail: Sequence[StoredEvent] = ()
) -> ChatState:
    """Return the state that a chain of segments, and the events after it, give.

    Args:
        store: Where large contents are.
        chain: What ``newest_chain`` gave, not empty.
        digest: The log's digest at the last version of the newest one.
        tail: The events after it.

    Raises:
        UnfitSegment: They are not what was written for this log.
    """
    opened = [open_segment(segment) for segment in chain]
    check_chain(opened, digest)
    named = {blob for each in opened for blob in each.blobs}
    blobs = await read_blobs(store, tail, named)
    messages: list[TranscriptMessage] = []
    for each in opened:
        messages += read_messages(each, blobs)
    state = read_state(opened[-1], messages, blobs)
    return fold(decode_each(tail, blobs=blobs), state)


async def read_recorded(
    store: Store, chat: ChatId, *, after: int = 0, upto: int | None = None, content: bool = True
) -> list[Recorded]:
    """Return the decoded events of ``chat`` with ``after`` < version <= ``upto``; without content values on request."""
    recorded: list[Recorded] = []
    async for page in pages(store, chat, after=after, upto=upto, content=content):
        blobs = await read_blobs(store, page) if content else {}
        recorded += decode_each(page, blobs=blobs, content=content)
    return recorded


async def read_stored(store: Store, chat: ChatId, *, after: int = 0, upto: int | None = None) -> list[StoredEvent]:
    """Return the events of ``chat`` with ``after`` < version <= ``upto`` as they are stored."""
    return [stored async for page in pages(store, chat, after=after, upto=upto) for stored in page]


async def pages(
    store: Store, chat: ChatId, *, after: int = 0, upto: int | None = None, content: bool = True, size: int = PAGE
) -> AsyncIterator[Sequence[StoredEvent]]:
    """Yield the events of ``chat`` with ``after`` < version <= ``upto``, ``size`` at once, none of them empty."""
    while True:
        page = await store.read_events(chat, after=after, upto=upto, limit=size, content=content)
        if page:
            yield page
        if len(page) < size:
            return
        after = page[-1].envelope.version


async def read_blobs(store: Store, events: Sequence[StoredEvent], named: Iterable[str] = ()) -> Mapping[str, bytes]:
    """Return the blobs that the contents of ``events`` lie in, and those ``named`` (digests in hex), as are kept."""
    wanted = {digest for event in events for digest in content_blobs(event.content)}.union(named)
    return await store.get_blobs(sorted(wanted)) if wanted else {}
