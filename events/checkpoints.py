"""Checkpoints: the state at any version of a long log, at once, without folding the log from its start.

While the log is folded once, a state is kept each few hundred events, and one behind each event that makes the indexes
of the whole history anew (an edit, an undone compaction). A jump folds from the nearest of them. States of one forward
fold share their messages, so a checkpoint costs little.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from events.codec import decode, decode_each
from events.envelope import Recorded, StoredEvent
from events.errors import InvalidValue
from events.given import checked_mapping, checked_sequence
from events.reducer import fold
from events.state import ChatState, initial_state
from events.values import checked_whole
from events.vocabulary import CompactionUndone, MessageEdited

EVERY: Final = 512
"""Events between two checkpoints: folding so many takes a few milliseconds."""

_NO_BLOBS: Final[Mapping[str, bytes]] = MappingProxyType({})
_WHOLE_HISTORY: Final = (MessageEdited, CompactionUndone)


class Checkpoints:
    """The states of a log.

    Every version can be asked for at any time; ``catch_up`` is what makes the answer quick. It may run in another
    thread than the one that asks, but only in one.

    Args:
        events: The log from version 1 on. It is not copied, and may be any sequence, also one that reads an event when
            it is asked for it; it may grow at its end and change in no other way.
        blobs: Blobs by digest (hex).
        every: Events between two checkpoints, at least 1.
        content: Whether states hold their contents; without, a log of any length takes little memory, and
            ``recorded`` gives the contents of one event.

    Raises:
        InvalidValue: ``every`` is less than 1, or these are no events.
    """

    def __init__(
        self,
        events: Sequence[StoredEvent],
        blobs: Mapping[str, bytes] = _NO_BLOBS,
        *,
        every: int = EVERY,
        content: bool = False,
    ) -> None:
        checked_whole(every, "$.every", least=1)
        checked_sequence(events, "$.events", "stored events in a sequence, as load_log(path).events are")
        checked_mapping(blobs, "$.blobs", "blobs by their digests")
        self._events: Final = events
        self._blobs: Final = blobs
        self._every: Final = every
        self._content: Final = content
        # Two lists and no pairs, so that a version is found by bisection. A state stands before its version does: who
        # asks from another thread finds no version without its state.
        self._states: Final[list[ChatState]] = [initial_state()]
        self._versions: Final[list[int]] = [0]
        self._tip = self._states[0]

    def __len__(self) -> int:
        """Return the number of events, which is the last version."""
        return len(self._events)

    @property
    def caught_up(self) -> int:
        """The last version whose state is known: up to it, and a little behind it, every answer is quick."""
        return self._tip.control.version

    def catch_up(self, most: int | None = None) -> bool:
        """Fold what was not folded yet: the whole log at first, and what came at its end since.

        Args:
            most: About how many events to fold in this call, for one who has other things to do between; None for all.

        Returns:
            Whether all is folded.

        Raises:
            EventsError: An event cannot be read; states before it can be asked for nevertheless.
        """
        last = len(self) if most is None else min(len(self), self.caught_up + most)
        while self.caught_up < last:
            next_one = self._versions[-1] + self._every
            self._tip, dear = self._advanced(min(next_one, last))
            if dear or self.caught_up == next_one:
                self._states.append(self._tip)
                self._versions.append(self.caught_up)
        return self.caught_up == len(self)

    def _advanced(self, stop: int) -> tuple[ChatState, bool]:
        """Return the state at ``stop``, or behind an event before it that nobody should fold twice, and which it is."""
        state = self._tip
        run: list[Recorded] = []
        for recorded in self._read(self.caught_up, stop):
            run.append(recorded)
            if isinstance(recorded.event, _WHOLE_HISTORY) and state.control.indexes.messages + len(run) > self._every:
                return fold(run, state), True
        return fold(run, state), False

    def state(self, version: int) -> ChatState:
        """Return the state after the event at ``version``; 0 is the state before the first event.

        Raises:
            InvalidValue: There is no such version.
            EventsError: An event up to it cannot be read.
        """
        self._check(version, 0)
        state = self._tip
        if state.control.version > version:
            state = self._states[bisect_right(self._versions, version) - 1]
        start = state.control.version
        return state if start == version else fold(self._read(start, version), state)

    def recorded(self, version: int, *, content: bool = True) -> Recorded:
        """Return the event at ``version``.

        Args:
            version: From 1 on.
            content: Whether with its contents.

        Raises:
            InvalidValue: There is no such version.
            EventsError: It cannot be read.
        """
        self._check(version, 1)
        return decode(self._events[version - 1], blobs=self._blobs, content=content)

    def _read(self, start: int, stop: int) -> Iterator[Recorded]:
        stored = (self._events[at] for at in range(start, stop))
        return decode_each(stored, blobs=self._blobs, content=self._content)

    def _check(self, version: int, first: int) -> None:
        if isinstance(version, bool) or not isinstance(version, int):
            raise InvalidValue("$.version", f"must be a whole number, not {type(version).__name__}")
        if not first <= version <= len(self):
            raise InvalidValue("$.version", f"there is no version {version}; the events given end at {len(self)}")
