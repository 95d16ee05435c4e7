"""Flushing: what models stream is kept by the store about each second, before it is committed. And reading it again.

One flusher per worker writes the chunks of all its answers under way with one call of the store. It is best effort: a
store that is away costs a line in the log and a later try, never the answer. It holds no more than what was streamed
since the last chunk that was kept, which the answer holds anyway. What a chunk is, and what comes of it, is
``generation.partials``' matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from chatstate.errors import ContentTooLarge
from events.control import Control
from events.errors import EventsError
from events.ids import ChatId
from events.records import ToolPolicy
from generation.partials import CallStart, Leftover, Timed, encode_chunk, recover
from generation.parts import EpisodeKey
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    ReasoningDelta,
    StreamPart,
    TextDelta,
    UsageSoFar,
)
from store.contract import PartialChunk, Store
from store.errors import MalformedRow, StoreError, Unstorable
from store.log import get_logger

_log = get_logger(__name__)
_T = TypeVar("_T")

PERIOD: Final = 1.0
"""Seconds that streamed text waits at most before it is handed to the store."""

LARGE: Final = 4096
"""Characters of one answer that are handed over before that."""

HASTE: Final = 0.25
"""Seconds that even a large answer waits first: one that comes at once is committed by then, and written once."""

SETTLED: Final = 0.5
"""Seconds after which text goes along with what others hand over; an answer that is shorter is never flushed."""

PAUSE: Final = 0.1
"""Seconds between two calls of the store at least."""

BATCH: Final = 1 << 20
"""Bytes after which a call of the store takes no more answers along: their copies must not count as memory."""

_WEIGHT: Final = 64
"""What a part counts beside its text."""


class Timer(Protocol):
    """Something that was put off."""

    def cancel(self) -> None:
        """Do not do it."""
        ...


def _later(seconds: float, then: Callable[[], object]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, then)


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class PartialSource:
    """One answer under way: what of it is not kept yet. Made by :meth:`Flusher.open`; close it when the answer ends."""

    __slots__ = (
        "_broken",
        "_chunks",
        "_flusher",
        "_n",
        "_parts",
        "_start",
        "_tools",
        "epoch",
        "flushed",
        "key",
        "since",
        "size",
    )

    def __init__(
        self, flusher: Flusher, key: EpisodeKey, epoch: int, start: CallStart, tools: Mapping[str, ToolPolicy]
    ) -> None:
        self.key = key
        self.epoch = epoch
        self.flushed = False
        """Whether a chunk was handed to the store, and so whatever ends the attempt must drop it."""
        self.since: float | None = None
        """When the oldest part that is not kept came, by the flusher's clock; None while there is none."""
        self.size = 0
        self._flusher = flusher
        self._start = start
        self._tools = tools
        self._parts: list[tuple[int, StreamPart | UsageSoFar]] = []
        self._chunks: tuple[PartialChunk, ...] = ()
        self._n = 0
        self._broken = False

    def add(self, part: StreamPart | UsageSoFar, at: int) -> None:
        """Take a part of the stream that came at ``at``, microseconds UTC."""
        if self._broken:
            return
        # Once for each delta of each answer: this is the hot path of a stream.
        self._parts.append((at, part))
        self.size += len(part.text) if isinstance(part, TextDelta) else _weight(part)
        if self.since is None:
            self._flusher.note(self)
        elif self.size >= LARGE:
            self._flusher.hurry()

    async def close(self) -> None:
        """End: nothing more is handed over, and what was is written, or is not, when this returns."""
        await self._flusher.forget(self)

    def leave(self) -> None:
        """End without waiting for a write under way: the store takes no chunk of an attempt that has ended."""
        self.give_up()
        self._flusher.drop(self)

    def chunks(self) -> Sequence[PartialChunk]:
        """Return the chunks to write: those that the store did not take, and one of what came since."""
        if self._parts:
            key = self.key
            data = encode_chunk(
                tuple(map(Timed._make, self._parts)), self._tools, self._start if self._n == 0 else None
            )
            chunk = PartialChunk(
                chat=key.chat,
                epoch=self.epoch,
                history_version=key.history_version,
                attempt=key.attempt,
                n=self._n,
                data=data,
            )
            self._chunks = (*self._chunks, chunk)
            self._n += 1
            self._parts, self.size = [], 0
        return self._chunks

    def give_up(self) -> None:
        """Take no more parts: what came cannot be written, and without it the rest is worth nothing."""
        self._broken = True
        self._parts, self.size = [], 0

    def written(self, count: int) -> None:
        """Forget as many chunks: they are kept."""
        self._chunks = self._chunks[count:]

    @property
    def waits(self) -> bool:
        """Whether there is something to write."""
        return bool(self._parts or self._chunks)


class Flusher:
    """Writes what the answers of one process have not committed.

    Args:
        store: Where chunks are kept.
        clock: Seconds that never go backwards; without one, the event loop's.
        later: Calls something after some seconds; without one, the event loop.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = _loop_time,
        later: Callable[[float, Callable[[], object]], Timer] = _later,
    ) -> None:
        self._store = store
        self._clock = clock
        self._later = later
        self._waiting: dict[EpisodeKey, PartialSource] = {}
        self._hurry = False
        self._last = float("-inf")
        self._pause = PAUSE
        self._woken = asyncio.Event()
        self._timer: Timer | None = None
        self._under_way: frozenset[EpisodeKey] = frozenset()
        self._written = asyncio.Event()

    def open(self, key: EpisodeKey, epoch: int, start: CallStart, tools: Mapping[str, ToolPolicy]) -> PartialSource:
        """Return the source of an answer that begins.

        Args:
            key: The attempt.
            epoch: The epoch of its holder.
            start: What is known of the call.
            tools: Declared tools by name.
        """
        return PartialSource(self, key, epoch, start, tools)

    def note(self, source: PartialSource) -> None:
        """Take note that a source has something to write."""
        source.since = self._clock()
        self._waiting[source.key] = source
        if self._timer is None:
            # Left running where the answer ends before: most are short, and to wake somebody for each would cost more.
            self._timer = self._later(PERIOD, self._wake)

    def hurry(self) -> None:
        """Write soon: a source has much."""
        if not self._hurry:
            self._hurry = True
            self._wake()

    def drop(self, source: PartialSource) -> None:
        """Take a source out."""
        self._waiting.pop(source.key, None)

    async def forget(self, source: PartialSource) -> None:
        """Take a source out, and wait for a write of its chunks that is under way."""
        self.drop(source)
        while source.key in self._under_way:
            self._written.clear()
            await self._written.wait()

    async def run(self) -> None:
        """Write as long as the worker lives."""
        # Of the loop that runs now: a worker may be started again on another one.
        self._woken, self._written = asyncio.Event(), asyncio.Event()
        while True:
            await self._rest()
            await self._flush()

    async def _rest(self) -> None:
        while (left := self._left()) is None or left > 0:
            self._woken.clear()
            self._stop_timer()
            if left is not None:
                self._timer = self._later(left, self._wake)
            try:
                await self._woken.wait()
            finally:
                self._stop_timer()

    def _wake(self) -> None:
        self._stop_timer()
        self._woken.set()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _left(self) -> float | None:
        """Return the seconds until something is to be written; None where there is nothing."""
        oldest = min((s.since for s in self._waiting.values() if s.since is not None), default=None)
        if oldest is None:
            self._hurry = False
            return None
        now = self._clock()
        pause = self._last + self._pause - now
        return max(pause, oldest + (HASTE if self._hurry else PERIOD) - now)

    async def _flush(self) -> None:
        now = self._clock()
        self._hurry, self._pause = False, PAUSE
        due = [
            source
            for source in reversed(self._waiting.values())
            if source.size >= LARGE or (source.since is not None and now - source.since >= SETTLED)
        ]
        while due:
            taken: dict[PartialSource, Sequence[PartialChunk]] = {}
            size = 0
            while due and size < BATCH:
                source = due.pop()
                # An answer may have ended while another batch was written.
                if source.key in self._waiting and self._take(source, taken):
                    size += sum(len(chunk.data) for chunk in taken[source])
            if taken:
                await self._write(taken)

    async def _write(self, taken: Mapping[PartialSource, Sequence[PartialChunk]]) -> None:
        self._under_way = frozenset(source.key for source in taken)
        kept: frozenset[ChatId] = frozenset()
        try:
            kept = await self._store.write_partials([chunk for chunks in taken.values() for chunk in chunks])
        except StoreError as error:
            self._pause = PERIOD
            _log.warning("partials_not_written", chats=len(taken), error=str(error))
        except Exception:  # noqa: BLE001 - whatever it is, answers go on, and so does this
            self._pause = PERIOD
            _log.exception("partials_not_written", chats=len(taken))
        finally:
            self._under_way = frozenset()
            self._written.set()
            self._last = self._clock()
        for source, chunks in taken.items():
            self._settle(source, len(chunks) if source.key.chat in kept else 0)

    def _take(self, source: PartialSource, taken: dict[PartialSource, Sequence[PartialChunk]]) -> bool:
        try:
            taken[source] = source.chunks()
            source.flushed = True
            return True
        except (ValueError, TypeError, RecursionError) as error:
            _log.warning("partial_not_encodable", chat=source.key.chat, error=type(error).__name__)
            source.give_up()
            del self._waiting[source.key]
            return False

    def _settle(self, source: PartialSource, written: int) -> None:
        """Take out of a source what was written; what was not is tried again soon."""
        source.written(written)
        if source.key not in self._waiting or not written:
            return
        del self._waiting[source.key]
        source.since = None
        if source.waits:
            self.note(source)


class LeftoversNeeded(Exception):
    """A plan met an attempt whose chunks were not read yet: read them, and run the plan again."""

    def __init__(self, history_version: int, attempt: int) -> None:
        super().__init__(f"attempt {attempt} on history {history_version}")
        self.history_version = history_version
        self.attempt = attempt


class Leftovers:
    """What was read of one chat's chunks, for plans to ask.

    A plan may run again on another state: what was read counts for the attempt that it was read for alone.
    """

    def __init__(self) -> None:
        self._of: tuple[int, int] | None = None
        self._leftover = Leftover()

    def of(self, control: Control) -> Leftover:
        """Return what the attempt under way left, whose holder is gone.

        Raises:
            LeftoversNeeded: It was not read yet.
        """
        running = control.running
        if running is None or running.kind != "generate":
            return Leftover()
        key = control.history_version, running.attempt
        if key != self._of:
            raise LeftoversNeeded(*key)
        return self._leftover

    def keep(self, needed: LeftoversNeeded, chunks: Sequence[PartialChunk]) -> None:
        """Note what was read."""
        self._of = needed.history_version, needed.attempt
        self._leftover = recover(chunks, *self._of)
        if self._leftover.problem is not None:
            chat = chunks[0].chat if chunks else None
            _log.warning("partial_left_out", chat=chat, attempt=needed.attempt, problem=self._leftover.problem)

    def drop_message(self) -> bool:
        """Keep the cost alone: the message cannot be committed. Returns whether there was one."""
        had = self._leftover.message is not None
        self._leftover = Leftover(report=self._leftover.report)
        return had


def no_leftovers_read(_: ChatId) -> Leftovers:
    """Return the leftovers of a chat of which nothing was read yet."""
    return Leftovers()


async def with_leftovers(
    read: Callable[[], Awaitable[Sequence[PartialChunk]]],
    work: Callable[[Leftovers], Awaitable[_T]],
    leftovers: Leftovers | None = None,
) -> _T:
    """Do work whose plans may ask what a dead holder's answer left; it is read when, and only if, one asks.

    What was left and cannot be stored is left out: it must not keep a turn from ending.

    Args:
        read: Gives the chat's chunks.
        work: Given what was read; done again after each reading.
        leftovers: Where what was read is kept; None for a new one.

    Raises:
        StoreError: The chunks could not be read.
    """
    leftovers = Leftovers() if leftovers is None else leftovers
    while True:
        try:
            return await work(leftovers)
        except LeftoversNeeded as needed:
            try:
                chunks = await read()
            except MalformedRow as error:
                # Somebody wrote over it: what cannot be read must not keep a turn from ending either.
                _log.warning("partial_left_out", attempt=needed.attempt, problem=str(error))
                chunks = ()
            leftovers.keep(needed, chunks)
        except (ContentTooLarge, EventsError, Unstorable) as error:
            if not leftovers.drop_message():
                raise
            _log.warning("partial_not_storable", error=type(error).__name__)


def _weight(part: StreamPart | UsageSoFar) -> int:
    if isinstance(part, TextDelta | ReasoningDelta | CallDelta):
        return len(part.text)
    return _WEIGHT + (len(part.arguments) if isinstance(part, CallEnd) else 0)
