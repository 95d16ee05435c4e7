"""The stream of one chat: committed events, with live parts between them where the chat runs in this process.

A position is one opaque cursor. Events come from the log, each once and in order; parts come from the worker's part
buffer, best effort. Where parts that were shown will not be committed as they were shown, a ``PreviewReset`` comes
before the events that say what happened instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeAlias

from msgspec import Struct

from chatstate.errors import ChatNotFound
from events.control import Control
from events.envelope import Recorded
from events.ids import ChatId
from events.vocabulary import CompactionCommitted, Event, InterruptionFinished, StepCommitted, ToolResultRecorded
from generation.cursor import Cursor
from generation.errors import SubscriberTooSlow
from generation.parts import EpisodeKey, LivePart, PartBuffer, SequencedPart, Subscription
from store.contract import Hint, Store
from store.loading import load_chat, read_recorded


class EventItem(Struct, frozen=True, kw_only=True):
    """A committed event."""

    cursor: str
    recorded: Recorded


class PartItem(Struct, frozen=True, kw_only=True):
    """A live part of the attempt under way."""

    cursor: str
    part: LivePart


class PreviewReset(Struct, frozen=True, kw_only=True):
    """Drop the parts shown since the last event: they were not committed, and the events that follow say why."""

    cursor: str


StreamItem: TypeAlias = EventItem | PartItem | PreviewReset


class ChatStream:
    """Follows one chat for ever, until its iterator is closed.

    Args:
        store: Where the chat is kept.
        parts: Live parts of this process.
        chat: Which chat.
        cursor: The position after which to go on.
        poll: Seconds after which the log is read although no hint came.
    """

    def __init__(self, store: Store, parts: PartBuffer, chat: ChatId, cursor: Cursor, poll: float) -> None:
        self._store = store
        self._parts = parts
        self._chat = chat
        self._poll = poll
        self._version = cursor.version
        self._seen = EpisodeKey(chat, cursor.history_version, cursor.attempt)
        self._seq = cursor.seq
        self._live: Subscription | None = None

    async def items(self) -> AsyncGenerator[StreamItem, None]:
        """Yield what comes after the cursor, then what happens.

        Raises:
            ChatNotFound: There is no such chat.
        """
        async with self._store.subscribe() as hints:
            news = asyncio.Event()
            listener = asyncio.create_task(self._listen(hints, news))
            try:
                async with aclosing(self._follow(news)) as items:
                    async for item in items:
                        yield item
            finally:
                listener.cancel()
                self._leave()

    async def _listen(self, hints: AsyncIterator[Hint], news: asyncio.Event) -> None:
        async for hint in hints:
            if hint.chat == self._chat and hint.version > self._version:
                news.set()

    async def _follow(self, news: asyncio.Event) -> AsyncGenerator[StreamItem, None]:
        while True:
            loaded = await load_chat(self._store, self._chat, transcript=False)
            if loaded is None:
                raise ChatNotFound("stream", "N", f"there is no chat {self._chat}")
            control = loaded.state.control
            for item in await self._events(control):
                yield item
            self._enter(control)
            async for part in self._until(news):
                yield part
            news.clear()

    async def _events(self, control: Control) -> list[StreamItem]:
        """Return the events since the last look, with the parts that came before them."""
        recorded = await read_recorded(self._store, self._chat, after=self._version, upto=control.version)
        live = _episode(self._chat, control)
        items: list[StreamItem] = []
        if self._seq and live != self._seen:
            if not any(_keeps(each.event, self._seen.attempt) for each in recorded):
                items.append(PreviewReset(cursor=Cursor(version=self._version).encode()))
            self._seq = 0
        for event in recorded:
            self._version = event.version
            items.append(EventItem(cursor=self._cursor(), recorded=event))
        return items

    def _enter(self, control: Control) -> None:
        """Watch the episode under way, from the part after the last one seen."""
        live = _episode(self._chat, control)
        if live == self._seen and self._live is not None:
            return
        self._leave()
        if live is None:
            return
        if live != self._seen:
            self._seen, self._seq = live, 0
        self._live = self._parts.subscribe(live, after=self._seq)

    def _leave(self) -> None:
        if self._live is not None:
            self._live.close()
            self._live = None

    async def _until(self, news: asyncio.Event) -> AsyncIterator[StreamItem]:
        """Yield parts until there is news of the log, or the poll interval has passed without any."""
        told = asyncio.create_task(news.wait())
        part = self._next_part()
        try:
            while True:
                waiting = {told} if part is None else {told, part}
                done, _ = await asyncio.wait(waiting, timeout=self._poll, return_when=asyncio.FIRST_COMPLETED)
                if part is not None and part in done:
                    item = self._part_item(part)
                    part = self._next_part() if item is not None else None
                    if item is not None:
                        yield item
                elif told in done or not done:
                    break
            if part is not None:
                part.cancel()
            # What the episode has left belongs before the events that may have ended it.
            while self._live is not None and (taken := self._live.take_nowait()) is not None:
                yield self._shown(taken)
        finally:
            for task in (told, part):
                if task is not None:
                    task.cancel()

    def _next_part(self) -> asyncio.Task[SequencedPart] | None:
        return asyncio.create_task(_take(self._live)) if self._live is not None else None

    def _part_item(self, task: asyncio.Task[SequencedPart]) -> PartItem | None:
        try:
            return self._shown(task.result())
        except (EpisodeEnded, SubscriberTooSlow):
            self._leave()
            return None

    def _shown(self, taken: SequencedPart) -> PartItem:
        self._seq = taken.seq
        return PartItem(cursor=self._cursor(), part=taken.part)

    def _cursor(self) -> str:
        if not self._seq:
            return Cursor(version=self._version).encode()
        return Cursor(
            version=self._version,
            history_version=self._seen.history_version,
            attempt=self._seen.attempt,
            seq=self._seq,
        ).encode()


class EpisodeEnded(Exception):
    """The parts of an episode are all read."""


async def _take(live: Subscription) -> SequencedPart:
    try:
        return await anext(live)
    except StopAsyncIteration:
        # A task cannot end with StopAsyncIteration.
        raise EpisodeEnded from None


def _keeps(event: Event, attempt: int) -> bool:
    """Whether an event commits what the attempt showed."""
    if isinstance(event, InterruptionFinished):
        return bool(event.added)
    return isinstance(event, StepCommitted | ToolResultRecorded | CompactionCommitted) and event.attempt == attempt


def _episode(chat: ChatId, control: Control) -> EpisodeKey | None:
    if control.running is None:
        return None
    return EpisodeKey(chat, control.history_version, control.running.attempt)
