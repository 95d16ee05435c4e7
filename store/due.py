"""Whose turn it is among chats that want a worker: one rule for all back ends.

Interruptions come before everything. Of the rest each owner's oldest chat comes before anybody's second, so that a
thousand chats of one owner do not starve another's only one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from events.ids import ChatId
from store.contract import DueChat, DueKind

OWNERS: Final = 1000
"""Owners whose oldest chat is looked for in a backlog; where more wait, the oldest chats of all come first."""


class Candidate(NamedTuple):
    """A chat that wants a worker since ``ready_at``; ``later`` is False for interruptions."""

    later: bool
    ready_at: int
    chat: ChatId
    kind: DueKind
    owner: str


def window(limit: int) -> int:
    """Return how many of the oldest candidates of each kind are looked at for ``limit`` chats."""
    return 4 * limit + 100


def in_turn(found: Iterable[Candidate], limit: int) -> list[DueChat]:
    """Return at most ``limit`` of the candidates, owners in turn."""
    before = Counter[tuple[bool, str]]()
    turns = list[tuple[bool, int, int, ChatId, DueKind, str]]()
    for each in sorted(set(found)):
        turns.append((each.later, before[each.later, each.owner], each.ready_at, each.chat, each.kind, each.owner))
        before[each.later, each.owner] += 1
    turns.sort()
    return [DueChat(chat, kind, owner) for *_, chat, kind, owner in turns[: max(limit, 0)]]
