"""Live parts: what a model and its tools are giving right now, for those who watch, before it is committed.

Owns the buffer of one process, in memory and best effort: the committed events are the truth, and a part that is lost
here costs a preview. Used from one event loop. Which episode of a chat is alive, and how parts and committed events
become one stream, is the stream's matter.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeAlias

import msgspec
from msgspec import Struct

from events.content import Json
from events.ids import CallKey, ChatId
from generation.errors import EpisodeExists, SubscriberTooSlow

CAPACITY: Final = 1 << 20
"""Bytes of one episode's parts as JSON."""

KEEP_CLOSED: Final = 15.0
"""Seconds that a closed episode stays for those who come late."""

CLOSED_BYTES: Final = 8 << 20
"""Bytes of the parts of all closed episodes, as JSON, that stay for those who come late."""

_EPISODE: Final = 1000
"""Bytes that a closed episode counts for beside its parts."""

SLOW_AFTER: Final = 10.0
"""Seconds within which a subscriber must take a part."""


class _LivePart(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", gc=False):
    """Base of live parts. Texts hold no lone surrogates (``events.values.DeltaJoiner``)."""

    @property
    def kind(self) -> str:
        """The part's kind, as in its JSON."""
        return str(self.__struct_config__.tag)


class LiveText(_LivePart, frozen=True, kw_only=True, tag="text"):
    """More text of the answer's block ``block``."""

    block: int
    text: str


class LiveReasoning(_LivePart, frozen=True, kw_only=True, tag="reasoning"):
    """More reasoning text of block ``block``."""

    block: int
    text: str


class LiveCallDelta(_LivePart, frozen=True, kw_only=True, tag="call_delta"):
    """More argument text of the call in block ``block``; its name comes with the first."""

    block: int
    text: str
    name: str = ""


class LiveCall(_LivePart, frozen=True, kw_only=True, tag="call"):
    """A whole call; ``arguments`` is the JSON text as the model gave it."""

    block: int
    name: str
    arguments: str
    provider_executed: bool = False


class LiveFile(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is told of a file before its bytes are committed. ``size``: its bytes, up to 2 too many."""

    media_type: str
    size: int
    name: str | None = None


class LiveResult(_LivePart, frozen=True, kw_only=True, tag="result"):
    """The result of a call before its commit, with its files (see ``events.parts.ToolResultPart``).

    ``ended_at``: when the call ended, in microseconds UTC; results are shown in the order of calls, not of their ends.
    ``call`` is absent where the provider executed it in this very answer.
    """

    name: str
    output: Json
    is_error: bool = False
    call: CallKey | None = None
    block: int | None = None
    media: tuple[LiveFile, ...] = ()
    attachments: tuple[LiveFile, ...] = ()
    ended_at: int | None = None


class LiveSummary(_LivePart, frozen=True, kw_only=True, tag="summary"):
    """More text of the summary that a compaction is writing, by its block. It is no answer: it enters no transcript."""

    block: int
    text: str


class LiveSource(_LivePart, frozen=True, kw_only=True, tag="source"):
    """A source that the answer cites."""

    block: int
    source_id: str
    url: str
    title: str | None = None


LivePart: TypeAlias = LiveText | LiveReasoning | LiveCallDelta | LiveCall | LiveResult | LiveSummary | LiveSource


class EpisodeKey(NamedTuple):
    """One attempt on one history of one chat."""

    chat: ChatId
    history_version: int
    attempt: int


class SequencedPart(NamedTuple):
    """A part and its place in its episode: 1 for the first, without gaps."""

    seq: int
    part: LivePart


@dataclass(slots=True, eq=False)
class _Episode:
    """What is known of an episode; ``created``: it is not only waited for; ``outdated``: it closed long ago."""

    created: bool = False
    closed_at: float | None = None
    parts: list[LivePart] = field(default_factory=list)
    size: int = 0
    full: bool = False
    outdated: bool = False
    subscribers: tuple[Subscription, ...] = ()


class PartBuffer:
    """The live parts of this process's episodes.

    Args:
        clock: Seconds that never go backwards.
        capacity: Bytes of one episode's parts as JSON; what comes after is not taken, and the preview ends there.
        keep_closed: Seconds that a closed episode without subscribers stays,
        closed_bytes: and bytes that the parts of all of them may take; the oldest go first.
        slow_after: Seconds after which a subscriber that left a part untaken is dropped.
        dropped: Called for each part that is not taken because its episode is full.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        capacity: int = CAPACITY,
        keep_closed: float = KEEP_CLOSED,
        closed_bytes: int = CLOSED_BYTES,
        slow_after: float = SLOW_AFTER,
        dropped: Callable[[], None] | None = None,
    ) -> None:
        self._clock = clock
        self._capacity = capacity
        self._keep_closed = keep_closed
        self._closed_bytes = closed_bytes
        self._slow_after = slow_after
        self._dropped = dropped
        self._episodes: dict[EpisodeKey, _Episode] = {}
        self._closed: deque[tuple[float, EpisodeKey, _Episode]] = deque()
        self._closed_size = 0
        self._watched: dict[EpisodeKey, _Episode] = {}

    def create(self, key: EpisodeKey) -> None:
        """Begin an episode. Also drops closed ones that have had their time.

        Raises:
            EpisodeExists: It was begun, or closed, before.
        """
        self._collect_closed(self._clock())
        episode = self._episodes.get(key)
        if episode is None:
            episode = self._episodes[key] = _Episode()
        if episode.created:
            raise EpisodeExists(
                f"attempt {key.attempt} on history {key.history_version} of chat {key.chat} has its parts here"
            )
        episode.created = True

    def add(self, key: EpisodeKey, part: LivePart) -> int | None:
        """Add a part to an episode and wake its subscribers.

        Returns:
            The part's ``seq``; None where it was not taken: the episode is unknown, closed, or full. Generation goes on
            without a preview.
        """
        episode = self._episodes.get(key)
        if episode is None or not episode.created or episode.closed_at is not None:
            return None
        size = 0 if episode.full else len(msgspec.json.encode(part))
        if episode.full or episode.size + size > self._capacity:
            episode.full = True  # also for smaller parts that would fit: a text with a hole is worse than one that ends
            if self._dropped is not None:
                self._dropped()
            return None
        episode.size += size
        episode.parts.append(part)
        if episode.subscribers:
            now = self._clock()
            for subscriber in episode.subscribers:
                subscriber._notice(now)  # noqa: SLF001 - the two are one mechanism
        return len(episode.parts)

    def close(self, key: EpisodeKey) -> None:
        """End an episode: subscribers get what is left, then their end.

        An unknown one is remembered as closed, so that it cannot begin any more; closing again changes nothing.
        """
        episode = self._episodes.setdefault(key, _Episode())
        episode.created = True
        if episode.closed_at is None:
            episode.closed_at = self._clock()
            self._closed.append((episode.closed_at, key, episode))
            self._closed_size += episode.size + _EPISODE
            for subscriber in episode.subscribers:
                subscriber._wake()  # noqa: SLF001 - the two are one mechanism

    def snapshot(self, key: EpisodeKey, *, after: int = 0) -> tuple[SequencedPart, ...]:
        """Return the parts of an episode so far, from ``after`` + 1 on; none of an unknown or collected one."""
        episode = self._episodes.get(key)
        if episode is None:
            return ()
        return tuple(SequencedPart(seq, part) for seq, part in enumerate(episode.parts[after:], after + 1))

    def truncated(self, key: EpisodeKey) -> bool:
        """Whether parts of the episode were left out because it was full."""
        episode = self._episodes.get(key)
        return episode is not None and episode.full

    def subscribe(self, key: EpisodeKey, *, after: int = 0) -> Subscription:
        """Return the parts of an episode from ``after`` + 1 on, as an async iterator to use as a context manager.

        An episode that is unknown is waited for. One that was collected never comes: whoever reads also follows the
        committed events.
        """
        episode = self._watched[key] = self._episodes.setdefault(key, _Episode())
        return Subscription(self, key, episode, after)

    def collect(self) -> None:
        """Drop subscribers that are too slow, and episodes that were closed long enough ago and have no subscriber."""
        now = self._clock()
        for episode in tuple(self._watched.values()):
            for subscriber in episode.subscribers:
                subscriber._drop_if_slow(now)  # noqa: SLF001 - the two are one mechanism
        self._collect_closed(now)

    def _collect_closed(self, now: float) -> None:
        while self._closed:
            closed_at, key, episode = self._closed[0]
            if now - closed_at < self._keep_closed and self._closed_size <= self._closed_bytes:
                break
            self._closed.popleft()
            self._closed_size -= episode.size + _EPISODE
            episode.outdated = True
            if not episode.subscribers:
                del self._episodes[key]

    def __len__(self) -> int:
        """How many episodes are held."""
        return len(self._episodes)

    def _leave(self, key: EpisodeKey, episode: _Episode, subscriber: Subscription) -> None:
        episode.subscribers = tuple(other for other in episode.subscribers if other is not subscriber)
        if episode.subscribers or self._episodes.get(key) is not episode:
            return
        self._watched.pop(key, None)
        if not episode.created or episode.outdated:
            del self._episodes[key]


class Subscription:
    """One reader's place in an episode. Iterating waits for parts and ends when the episode is closed and read."""

    def __init__(self, buffer: PartBuffer, key: EpisodeKey, episode: _Episode, after: int) -> None:
        self._buffer = buffer
        self._key = key
        self._episode = episode
        self._taken = after
        self._waiting_since: float | None = None
        self._dropped = False
        self._awake = asyncio.Event()
        episode.subscribers = (*episode.subscribers, self)
        self._restart()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the episode."""
        self._buffer._leave(self._key, self._episode, self)  # noqa: SLF001 - the two are one mechanism

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SequencedPart:
        """Return the next part.

        Raises:
            SubscriberTooSlow: The reader left a part untaken for too long.
        """
        while True:
            if self._dropped:
                raise SubscriberTooSlow(f"live parts of chat {self._key.chat} were not taken in time")
            if (taken := self._take_next()) is not None:
                return taken
            if self._episode.closed_at is not None:
                raise StopAsyncIteration
            self._awake.clear()
            await self._awake.wait()

    def _take_next(self) -> SequencedPart | None:
        """Return the next part if it is there; None where it would have to be waited for, or there is none any more."""
        parts = self._episode.parts
        if self._dropped or self._taken >= len(parts):
            return None
        self._taken += 1
        self._restart()
        return SequencedPart(self._taken, parts[self._taken - 1])

    def _restart(self) -> None:
        """Start the time that the next part may wait, if there is one."""
        behind = self._taken < len(self._episode.parts)
        self._waiting_since = self._buffer._clock() if behind else None  # noqa: SLF001 - the two are one mechanism

    def _notice(self, now: float) -> None:
        """A part was added."""
        if self._waiting_since is None and self._taken < len(self._episode.parts):
            self._waiting_since = now
        self._drop_if_slow(now)
        self._awake.set()

    def _wake(self) -> None:
        self._awake.set()

    def _drop_if_slow(self, now: float) -> None:
        since = self._waiting_since
        if since is not None and now - since > self._buffer._slow_after:  # noqa: SLF001 - the two are one mechanism
            self._dropped = True
            self._awake.set()
            self.close()
