"""Warm chats: what this process knows of chats that it had to do with lately, so that the next turn reads little.

A cache: what is in it may be behind the log, and whoever uses it sees to that (``store.append``). Bounded by bytes, so
a process does not grow with the chats that it once served; those that were not used for longest go first. A chat that
is run here is in memory anyway, so it stays and is not counted: to let it go would spare nothing and have it read anew.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, OrderedDict
from typing import Final, final, get_args

from msgspec.structs import fields

from events.content import Content
from events.ids import ChatId
from events.messages import Message
from events.parts import PARTS
from events.transcript import Transcript, plain_text
from store.loading import LoadedChat
from store.rules import is_settled

WARM_BYTES: Final = 64 << 20
"""Bytes of warm chats where nothing else is said."""

_PER_CHAT: Final = 4_000
_PER_PLAIN: Final = 100
_PER_MESSAGE: Final = 300
_PER_STEP: Final = 300
_PER_PART: Final = 250
"""Bytes of what surrounds the texts: control and maps; a plain message (``events.transcript``); any other one here and
in the prompt; what is known of its step; a part in both. As measured: ``tests/store/test_warm.py`` holds the sum
against what is allocated."""


@final
class _Entry:
    """A chat, its estimated bytes, and what others keep beside it. ``weighed``: messages that the estimate counts."""

    __slots__ = ("aside", "beside", "history", "loaded", "weighed")

    def __init__(self, loaded: LoadedChat) -> None:
        self.loaded = loaded
        self.history = self.aside = self.weighed = 0
        self.beside: object = None

    def update(self, loaded: LoadedChat) -> None:
        if not loaded.state.messages.continues(self.loaded.state.messages):
            # History lost something, perhaps because its content was erased: what was made of it goes too.
            self.history, self.weighed, self.beside = 0, 0, None
        self.loaded = loaded

    def weigh(self) -> int:
        """Return the estimated bytes, counting what came since the last time."""
        messages = self.loaded.state.messages
        self.history += sum(size_of_message(item.message) for item in messages.since(self.weighed))
        messages.shrink(self.weighed)
        self.weighed = len(messages)
        self.aside = _aside(self.loaded.state.need_transcript("keep it warm"))
        return self.size

    @property
    def size(self) -> int:
        """The estimated bytes as weighed last."""
        return _PER_CHAT + self.history + self.aside


_CONTENTS: Final = {
    part: tuple(field.name for field in fields(part) if Content in (field.type, *get_args(field.type)))
    for part in PARTS
}
"""Which fields of a part hold content."""


def size_of_message(message: Message) -> int:
    """Return about how many bytes of memory a message takes, its converted form included."""
    size = 0 if message.step is None else _PER_STEP
    text = plain_text(message)
    if text is not None:
        return size + _PER_PLAIN + sys.getsizeof(text)
    size += _PER_MESSAGE
    for part in message.parts:
        size += _PER_PART
        for name in _CONTENTS[type(part)]:
            content = getattr(part, name)
            if content is not None:
                size += _size_of_value(content)
    return size


def _size_of_value(content: Content) -> int:
    held = content.held
    if type(held) is str:
        return sys.getsizeof(held)
    return 4 * content.size if content.available and held is not None else 0


def _aside(transcript: Transcript) -> int:
    """Return about the bytes of what waits beside history."""
    size = sum(size_of_message(queued.message) for queued in transcript.queued.values())
    size += sum(_size_of_value(result.output) + _PER_PART for result in transcript.results.values() if result.output)
    return size + sum(_size_of_value(arguments) for arguments in transcript.arguments.values())


@final
class WarmChats:
    """The chats of one process that are warm.

    Args:
        limit: Bytes that those may take together that are not held, as far as these can be estimated. 0: none is kept
            but those that are held.
    """

    def __init__(self, limit: int = WARM_BYTES) -> None:
        self._limit = limit
        self._entries: OrderedDict[ChatId, _Entry] = OrderedDict()
        self._held: dict[ChatId, _Entry | None] = {}
        self._holders: Counter[ChatId] = Counter()
        self._size = 0
        self._waiting: dict[ChatId, list[asyncio.Future[LoadedChat | None]]] = {}

    @property
    def size(self) -> int:
        """Estimated bytes of all that are not held."""
        return self._size

    def __len__(self) -> int:
        """How many there are."""
        return len(self._entries) + sum(entry is not None for entry in self._held.values())

    def hold(self, chat: ChatId) -> None:
        """Keep a chat whatever its size, and do not count it, until it is let go as often as it was held."""
        self._holders[chat] += 1
        if chat not in self._held:
            entry = self._held[chat] = self._entries.pop(chat, None)
            self._size -= entry.size if entry is not None else 0

    def let_go(self, chat: ChatId) -> None:
        """Count a chat as one of those that may go, unless another one holds it too."""
        self._holders[chat] -= 1
        if self._holders[chat] > 0:
            return
        del self._holders[chat]
        entry = self._held.pop(chat, None)
        if entry is not None:
            self._entries[chat] = entry
            self._size += entry.weigh()
            self._evict()

    def get(self, chat: ChatId) -> LoadedChat | None:
        """Return the chat as it was known last, with its transcript, or None."""
        entry = self._find(chat)
        if entry is None:
            return None
        if chat in self._entries:
            self._entries.move_to_end(chat)
        return entry.loaded

    def put(self, loaded: LoadedChat) -> None:
        """Keep a chat that was just read or written, unless it is known newer; does nothing without a transcript."""
        if loaded.state.transcript is None:
            return
        chat = loaded.header.chat
        if chat in self._waiting and is_settled(loaded.header):
            for waiting in self._waiting.pop(chat):
                if not waiting.done():
                    waiting.set_result(loaded)
        entry = self._find(chat)
        if entry is not None and entry.loaded.header.version > loaded.header.version:
            return
        if chat in self._held:
            entry = self._held[chat] = entry or _Entry(loaded)
            entry.update(loaded)
            return
        if entry is None:
            entry = self._entries[chat] = _Entry(loaded)
        else:
            self._size -= entry.size
            self._entries.move_to_end(chat)
        entry.update(loaded)
        self._size += entry.weigh()
        self._evict()

    async def settled(self, chat: ChatId, patience: float) -> LoadedChat | None:
        """Wait until this process has read or written the chat settled; None where ``patience`` seconds pass first."""
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[LoadedChat | None] = loop.create_future()
        all_waiting = self._waiting.setdefault(chat, [])
        all_waiting.append(waiting)
        timer = loop.call_later(patience, _give_up, waiting)
        try:
            return await waiting
        finally:
            timer.cancel()
            if self._waiting.get(chat) is all_waiting:
                all_waiting.remove(waiting)
                if not all_waiting:
                    del self._waiting[chat]

    def drop(self, chat: ChatId) -> None:
        """Forget a chat."""
        if chat in self._held:
            self._held[chat] = None
        entry = self._entries.pop(chat, None)
        if entry is not None:
            self._size -= entry.size

    def beside(self, chat: ChatId) -> object:
        """Return what was kept beside a chat; None where there is nothing, or its history is another one since."""
        entry = self._find(chat)
        return entry.beside if entry is not None else None

    def keep_beside(self, chat: ChatId, thing: object) -> None:
        """Keep something that was made of a chat's transcript as long as the chat is warm."""
        entry = self._find(chat)
        if entry is not None:
            entry.beside = thing

    def _find(self, chat: ChatId) -> _Entry | None:
        return self._entries.get(chat) or self._held.get(chat)

    def _evict(self) -> None:
        while self._size > self._limit and self._entries:
            _, entry = self._entries.popitem(last=False)
            self._size -= entry.size


def _give_up(waiting: asyncio.Future[LoadedChat | None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
