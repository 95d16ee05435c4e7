"""Forks and what they were forked from: the logs of a chat's origins, where they are at hand.

Owns where origins are looked for: among the logs that are compared, then in the store that has one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from chatfold.replaying.alignment import forked_from, reaches
from chatfold.replaying.logs import Log, LogSource
from chatstate.errors import ChatNotFound
from events.envelope import Recorded


class Ancestor(Struct, frozen=True, kw_only=True):
    """What a chat was forked from.

    Attributes:
        chat: The origin.
        version: The version of it that was forked.
        known: Whether its log is at hand up to there.
    """

    chat: str
    version: int
    known: bool


class Family(Struct, frozen=True, kw_only=True):
    """A log, without contents, and those that it was forked from.

    Attributes:
        log: Its events.
        origins: Events of the logs that are at hand, by chat.
        ancestors: What it was forked from, the nearest first; behind one that is not known nothing is.
    """

    log: Sequence[Recorded]
    origins: Mapping[str, Sequence[Recorded]]
    ancestors: tuple[Ancestor, ...]


def families_of(logs: Sequence[Log], store: str | None) -> list[Family]:
    """Return logs with those that they were forked from.

    Args:
        logs: The logs; each may be the origin of another.
        store: URL of the store that may have further ones; None for none. It is read in an event loop of its own.

    Raises:
        EventsError: An event cannot be read.
        StoreError: The store cannot be read.
    """
    known = {log.chat: list(log.bare()) for log in logs}
    found = []
    for log in logs:
        events = list(log.bare())
        found.append((events, tuple(_ancestors(events, known, store))))
    return [Family(log=events, origins=known, ancestors=ancestors) for events, ancestors in found]


def _ancestors(log: Sequence[Recorded], known: dict[str, list[Recorded]], store: str | None) -> Iterator[Ancestor]:
    """Yield what a chat was forked from; the logs that are found for it become known."""
    seen: set[str] = set()
    origin = forked_from(log)
    while origin is not None and origin.chat not in seen:
        seen.add(origin.chat)
        if not reaches(known.get(origin.chat), origin) and (read := _stored(origin.chat, store)):
            known[origin.chat] = read
        before = known.get(origin.chat)
        at_hand = reaches(before, origin)
        yield Ancestor(chat=origin.chat, version=origin.version, known=at_hand)
        origin = forked_from(before) if at_hand and before else None


def _stored(chat: str, store: str | None) -> list[Recorded]:
    """Return the events of a chat in a store; none where it is not there, or not any more."""
    if store is None:
        return []
    try:
        return list(LogSource("chat", chat, store).read().bare())
    except ChatNotFound:
        return []
