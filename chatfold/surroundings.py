"""Verifying what a store keeps beside a chat's log: its places in the feed, its uses of large contents, its mark.

Owns these checks, which need more than the log itself. Of the mark *foreign* the places tell one thing: a chat's log is
imported whole, in one transaction, and nothing is added to it until it is adopted. So a chat with events of a later
transaction is not foreign, whatever its header says. Whether one without is shows nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from events.envelope import StoredEvent
from store.auditing import EventPlace


class PlaceCheck:
    """Checks where the events of one log stand in the feed, event by event.

    Attributes:
        went_on: The first version that only a chat which runs here can have; None where there is none.
    """

    def __init__(self) -> None:
        self.went_on: int | None = None
        self._first: EventPlace | None = None
        self._last: EventPlace | None = None

    def take(self, events: Iterable[StoredEvent], places: Iterable[EventPlace]) -> Iterator[tuple[int, str]]:
        """Check the next events, and yield versions that are out of their places, with what is wrong."""
        by_version = {place.version: place for place in places}
        for stored in events:
            place = by_version.get(stored.envelope.version)
            if place is not None:
                yield from ((place.version, problem) for problem in self._problems(place))
                self._note(place)

    def _problems(self, place: EventPlace) -> Iterator[str]:
        last = self._last
        if last is None:
            return
        if (place.tx, place.position) <= (last.tx, last.position):
            yield (
                f"it stands at {place.tx}-{place.position} in the feed, which is not behind the event before it, "
                f"at {last.tx}-{last.position}"
            )
        elif not place.begins and place.tx != last.tx:
            yield f"it stands in transaction {place.tx} of the feed, and the command that it belongs to in {last.tx}"

    def _note(self, place: EventPlace) -> None:
        self._first = self._first or place
        if self.went_on is None and place.tx > self._first.tx:
            self.went_on = place.version
        self._last = place


def use_problems(referred: frozenset[str], kept: frozenset[str], used: frozenset[str]) -> Iterator[str]:
    """Yield what is wrong with a chat's uses of large contents.

    Args:
        referred: Digests that its events refer to.
        kept: Those of them that the store has.
        used: Those that the chat is said to use.
    """
    for digest in sorted(referred & kept - used):
        yield f"content {digest} is referred to, and not said to be used: it may be deleted with another chat"
    for digest in sorted(used - referred):
        yield f"content {digest} is said to be used, and nothing refers to it: it is kept for nothing"
