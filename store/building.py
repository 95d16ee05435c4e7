"""Building segments: what is missing of a chat's transcript is packed and written, off the path of those who wait.

``build_segments`` makes them from the log. ``SegmentBuilder`` makes them of the states that a worker has at hand, one
chat at a time, encoding in a thread. What goes wrong costs nothing but the time of later loads: it is logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from events.codec import decode
from events.envelope import StoredEvent
from events.errors import ContentUnavailable
from events.ids import ChatId
from events.reducer import fold
from events.state import ChatState, initial_state
from events.transcript import Messages
from store.contract import Segment, Store
from store.loading import TAIL, LoadedChat, open_chain, pages, read_blobs
from store.log import get_logger
from store.segments import (
    SCHEMA,
    MadeSegment,
    UnfitSegment,
    end_of,
    is_prefix,
    make_segment,
    newest_chain,
)

_log = get_logger(__name__)

_CUT: Final = 512 * 1024
"""Bytes of stored events after which a segment is cut."""

_MOST: Final = 2 * _CUT
"""Bytes that a segment of a state at hand may have; what has more is made from the log, in several."""

_MOST_MESSAGES: Final = 2048
"""Messages that it may have."""

_WAITING: Final = 32
"""Chats that may wait for a builder; more are let pass, and come again."""

_REMEMBERED: Final = 10_000
"""Chats of which a builder remembers when to look at them again."""


async def build_segments(store: Store, chat: ChatId) -> int:
    """Build the segments that a chat lacks, from its log; return how many were written.

    None where it is gone, or has less than ``TAIL`` events behind its newest segment. Segments that cannot be used, and
    those that history has left behind, are replaced.

    Raises:
        EventsError: An event cannot be read, or one of its contents is not in the store.
        StoreUnavailable: The store cannot be asked.
    """
    loaded = await store.load_header(chat)
    if loaded is None or loaded.header.version < TAIL:
        return 0
    kept = await store.read_segments(chat)
    chain, state = await _begin(store, chat, newest_chain(kept, loaded.header.version))
    line = _Line(store, chat, chain, state)
    async for page in pages(store, chat, after=state.control.version, upto=loaded.header.version):
        await line.follow(page)
    await line.end()
    written, replaced = 0, _left_behind(kept, line.chain)
    for segment in line.chain:
        if segment not in kept:
            if not await store.write_segment(segment, replaced):
                break
            written, replaced = written + 1, []
    return written


async def _begin(store: Store, chat: ChatId, chain: list[Segment]) -> tuple[list[Segment], ChatState]:
    """Return the segments to go on from, and the state that they give."""
    if chain:
        at = chain[-1].last_version
        there = await store.read_events(chat, after=at - 1, upto=at, content=False)
        try:
            return chain, await open_chain(store, chain, there[0].digest if there else None)
        except UnfitSegment as error:
            _log.warning("segments_ignored", chat=chat, version=at, error=str(error))
    return [], initial_state()


class _Line:
    """A chain that grows along a log. ``chain`` holds the segments that history has not left behind."""

    def __init__(self, store: Store, chat: ChatId, chain: list[Segment], state: ChatState) -> None:
        self.chain = chain
        self._store = store
        self._chat = chat
        self._state = state
        self._digest = b""
        self._bytes = 0

    async def follow(self, events: Sequence[StoredEvent]) -> None:
        """Fold the next events, and cut a segment wherever enough came together."""
        blobs = await read_blobs(self._store, events)
        run: list[StoredEvent] = []
        for stored in events:
            run.append(stored)
            self._bytes += len(stored.facts) + len(stored.content)
            if self._bytes >= _CUT:
                await self._fold(run, blobs)
                await self._cut()
                run = []
        if run:
            await self._fold(run, blobs)

    async def end(self) -> None:
        """Cut the last segment, if what is left is long enough."""
        base = _prune(self.chain, self._state.messages)
        if self._state.control.version - _version(base) >= TAIL:
            await self._cut()

    async def _fold(self, events: Sequence[StoredEvent], blobs: Mapping[str, bytes]) -> None:
        self._state = await asyncio.to_thread(
            lambda: fold((decode(stored, blobs=blobs) for stored in events), self._state)
        )
        self._digest = events[-1].digest

    async def _cut(self) -> None:
        base = _prune(self.chain, self._state.messages)
        made = await _made(self._store, self._chat, self._state, self._digest, base)
        self.chain.append(made.segment)
        self._bytes = 0


class SegmentBuilder:
    """Builds segments of the states that it is offered, in the background: one chat at a time, at most a few waiting.

    Args:
        store: Where the chats are kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[ChatId, LoadedChat] = {}
        self._look_at: dict[ChatId, int] = {}
        self._task: asyncio.Task[None] | None = None

    def offer(self, loaded: LoadedChat | None) -> None:
        """Take a chat as it is now: if it may lack a segment, one is built soon. Costs next to nothing if not."""
        if loaded is None or loaded.state.transcript is None:
            return
        chat, version = loaded.header.chat, loaded.header.version
        if version < self._look_at.get(chat, TAIL) or (len(self._waiting) >= _WAITING and chat not in self._waiting):
            return
        self._waiting[chat] = loaded
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())

    async def idle(self) -> None:
        """Wait until nothing is left to build."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Stop building at once: what is missing will be built later. It may be offered chats again afterwards."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _work(self) -> None:
        while self._waiting:
            chat = next(iter(self._waiting))
            loaded = self._waiting.pop(chat)
            built = loaded.header.version
            try:
                built = await _build(self._store, loaded)
            except ContentUnavailable as error:
                _log.debug("segments_not_built", chat=chat, error=str(error))
            except Exception:  # noqa: BLE001 - whatever it is, the log has all that a segment would hold
                _log.warning("segments_not_built", chat=chat, exc_info=True)
            self._look_at.pop(chat, None)
            self._look_at[chat] = built + TAIL
            if len(self._look_at) > _REMEMBERED:
                del self._look_at[next(iter(self._look_at))]


async def _build(store: Store, loaded: LoadedChat) -> int:
    """Build what a chat lacks, of its state as far as that is small; return the version that its segments reach."""
    header, messages = loaded.header, loaded.state.messages
    kept = await store.read_segments(header.chat, data=False)
    chain = newest_chain(kept, header.version)
    base = _prune(chain, messages)
    if header.version - _version(base) < TAIL:
        return _version(base)
    if len(messages) - end_of(base) <= _MOST_MESSAGES:
        made = await _made(store, header.chat, loaded.state, header.digest, base)
        if made.raw_bytes <= _MOST:
            await store.write_segment(made.segment, _left_behind(kept, chain))
            return header.version
    await build_segments(store, header.chat)
    return header.version


async def _made(store: Store, chat: ChatId, state: ChatState, digest: bytes, base: Segment | None) -> MadeSegment:
    made = await asyncio.to_thread(make_segment, chat, state, digest, base)
    known = frozenset(await store.get_blobs(sorted(made.large))) if made.large else None
    return await asyncio.to_thread(make_segment, chat, state, digest, base, known) if known else made


def _prune(chain: list[Segment], messages: Messages) -> Segment | None:
    """Take from the end of a chain what history has left behind; return the newest segment that is left."""
    while chain and not is_prefix(chain[-1], messages):
        chain.pop()
    return chain[-1] if chain else None


def _version(segment: Segment | None) -> int:
    return 0 if segment is None else segment.last_version


def _left_behind(kept: Iterable[Segment], chain: Sequence[Segment]) -> list[Segment]:
    """Return the segments that ``chain`` does without; those of a newer release are not ours to replace."""
    return [segment for segment in kept if segment.schema <= SCHEMA and segment not in chain]
