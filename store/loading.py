"""Loading a chat: its control by one keyed read, or the whole fold of its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from events.codec import decode_all
from events.contentlist import content_blobs
from events.control import decode_control
from events.envelope import Recorded, StoredEvent
from events.ids import ChatId
from events.reducer import fold
from events.state import ChatState
from store.contract import Header, Store

PAGE = 1000
"""Events read at once."""


class LoadedChat(Struct, frozen=True, kw_only=True):
    """A chat at a version: its state, its header, and what the database's clock said when it was read.

    ``now`` is microseconds UTC. ``holder_alive``: the holder's lease lived then (False without a holder).
    """

    state: ChatState
    header: Header
    now: int
    holder_alive: bool

    @property
    def lease_dead(self) -> bool:
        """Whether the chat has a holder and its lease is dead; once true it stays true for this holder."""
        return self.header.holder is not None and not self.holder_alive


async def load_chat(store: Store, chat: ChatId, *, transcript: bool) -> LoadedChat | None:
    """Return the chat, or None if there is none.

    Args:
        store: Where it is kept.
        chat: Which.
        transcript: Whether to fold the whole log; without it one keyed read gives control.
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
    """Return the state of a chat, transcript included, at the version of ``header``: what its log folds to."""
    return fold(await read_recorded(store, header.chat, upto=header.version))


async def read_recorded(
    store: Store, chat: ChatId, *, after: int = 0, upto: int | None = None, content: bool = True
) -> list[Recorded]:
    """Return the decoded events of ``chat`` with ``after`` < version <= ``upto``; without content values on request."""
    recorded: list[Recorded] = []
    while True:
        page = await store.read_events(chat, after=after, upto=upto, limit=PAGE, content=content)
        blobs = await read_blobs(store, page) if content else {}
        recorded += decode_all(page, blobs=blobs, content=content)
        if len(page) < PAGE:
            return recorded
        after = page[-1].envelope.version


async def read_stored(store: Store, chat: ChatId, *, after: int = 0, upto: int | None = None) -> list[StoredEvent]:
    """Return the events of ``chat`` with ``after`` < version <= ``upto`` as they are stored."""
    events: list[StoredEvent] = []
    while True:
        page = await store.read_events(chat, after=after, upto=upto, limit=PAGE)
        events.extend(page)
        if len(page) < PAGE:
            return events
        after = page[-1].envelope.version


async def read_blobs(store: Store, events: Sequence[StoredEvent]) -> Mapping[str, bytes]:
    """Return the blobs that ``events`` refer to."""
    wanted = {digest for event in events for digest in content_blobs(event.content)}
    return await store.get_blobs(sorted(wanted)) if wanted else {}
