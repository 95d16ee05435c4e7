"""The stream of one chat: committed events, with live parts between them where the chat runs in this process.

A position is one opaque cursor. Events come from the log, each once and in order; parts come from the worker's part
buffer, best effort. The parts of an attempt stand between its start and its end. Where they are what the end commits,
the last of them come before it; where they will not be committed as they were shown, a ``PreviewReset`` comes before
the events that say what happened instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Final, TypeAlias

from msgspec import Struct

from events import vocabulary as v
from events.control import Control
from events.envelope import Recorded
from events.ids import ChatId
from events.vocabulary import Event
from generation.cursor import Cursor
from generation.errors import CursorInvalid, SubscriberTooSlow
from generation.parts import EpisodeKey, LivePart, PartBuffer
from store.contract import Hint, Store
from store.loading import load_chat, must_be_there, read_recorded


class EventItem(Struct, frozen=True, kw_only=True):
    """A committed event."""

    cursor: str
    recorded: Recorded


class PartItem(Struct, frozen=True, kw_only=True):
    """A live part of the attempt under way."""

    cursor: str
    part: LivePart


class PreviewReset(Struct, frozen=True, kw_only=True):
    """Drop the parts shown of the attempt under way: the events that follow say what became of it."""

    cursor: str


StreamItem: TypeAlias = EventItem | PartItem | PreviewReset

_ENDS_ATTEMPT: Final = (
    v.Acquired,
    v.AttemptStarted,
    v.CompactionCommitted,
    v.ContextPersisted,
    v.InterruptionFinished,
    v.MessageEdited,
    v.StepCommitted,
    v.TurnFinished,
)
"""Events after which an attempt is not under way any more, although the chat may still be running."""

_COMMITS: Final = (v.StepCommitted, v.InterruptionFinished, v.TurnFailed)
"""Events that may commit what an attempt gave."""


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
        self._wake = asyncio.Event()
        self._stale = True
        self._waker: asyncio.Task[None] | None = None

    async def items(self) -> AsyncGenerator[StreamItem, None]:
        """Yield what comes after the cursor, then what happens.

        Raises:
            ChatNotFound: There is no such chat.
            CursorInvalid: The cursor is ahead of the chat: it is another chat's, or the chat's store was put back.
        """
        async with self._store.hints(self._chat) as hints:
            listener = asyncio.create_task(self._listen(hints))
            try:
                async with aclosing(self._follow()) as items:
                    async for item in items:
                        yield item
            finally:
                listener.cancel()
                self._leave()

    async def _listen(self, hints: AsyncIterator[Hint]) -> None:
        async for hint in hints:
            if hint.version > self._version:
                self._stale = True
                self._wake.set()

    async def _follow(self) -> AsyncGenerator[StreamItem, None]:
        clock = asyncio.get_running_loop().time
        due = 0.0
        while True:
            self._wake.clear()
            if self._stale or clock() >= due:
                self._stale, due = False, clock() + self._poll
                control, recorded = await self._look()
                for item in (*self._new_parts(), *self._events(recorded)):
                    yield item
                self._enter(control)
            for part in self._new_parts():
                yield part
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - clock())):
                    await self._wake.wait()

    async def _look(self) -> tuple[Control, list[Recorded]]:
        found = await load_chat(self._store, self._chat, transcript=False)
        loaded = must_be_there(found, "stream", self._chat)
        control = loaded.state.control
        if control.version < self._version:
            why = f"it is behind version {self._version}, and chat {self._chat} has {control.version} events"
            raise CursorInvalid(self._cursor(), why)
        return control, await read_recorded(self._store, self._chat, after=self._version, upto=control.version)

    def _new_parts(self) -> list[PartItem]:
        """Return the parts of the attempt being watched that were not shown yet."""
        items: list[PartItem] = []
        if self._waker is not None or self._seq:
            for seq, part in self._parts.snapshot(self._seen, after=self._seq):
                self._seq = seq
                items.append(PartItem(cursor=self._cursor(), part=part))
        return items

    def _events(self, recorded: Sequence[Recorded]) -> list[StreamItem]:
        items: list[StreamItem] = []
        for each in recorded:
            if each.envelope.dest != "running" or isinstance(each.event, _ENDS_ATTEMPT):
                if self._seq and not self._commits(each.event):
                    items.append(PreviewReset(cursor=Cursor(version=self._version).encode()))
                self._leave()
                self._seen, self._seq = EpisodeKey(self._chat, 0, 0), 0
            self._version = each.version
            items.append(EventItem(cursor=self._cursor(), recorded=each))
        return items

    def _commits(self, event: Event) -> bool:
        """Whether an event that ends the attempt commits what was shown of it, all of it."""
        if not isinstance(event, _COMMITS) or event.attempt != self._seen.attempt:
            return False
        if not event.answers and not any(message.role == "assistant" for message in event.added):
            return False
        shown = len(self._parts.snapshot(self._seen)) == self._seq
        return shown and not self._parts.truncated(self._seen)

    def _enter(self, control: Control) -> None:
        """Watch the attempt under way, from the part after the last one seen."""
        running = control.running
        if running is None:
            return
        live = EpisodeKey(self._chat, control.history_version, running.attempt)
        if live == self._seen and self._waker is not None and not self._waker.done():
            return
        if live != self._seen:
            self._seen, self._seq = live, 0
        self._leave()
        self._waker = asyncio.create_task(self._wake_up(live))

    async def _wake_up(self, live: EpisodeKey) -> None:
        with self._parts.subscribe(live, after=self._seq) as parts, suppress(SubscriberTooSlow):
            async for _ in parts:
                self._wake.set()
            # Held until the event that ends the attempt was shown: only with its parts at hand can be told whether they
            # are what it commits, however long it takes to come.
            await asyncio.Event().wait()

    def _leave(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
            self._waker = None

    def _cursor(self) -> str:
        if not self._seq:
            return Cursor(version=self._version).encode()
        return Cursor(
            version=self._version,
            history_version=self._seen.history_version,
            attempt=self._seen.attempt,
            seq=self._seq,
        ).encode()
