"""Which worker acts first where several see the same chat: rendezvous hashing. Pure.

Every worker ranks all of them for a chat and gets the same order, without a word between them. The first acts at once,
each further one a moment later, unless it hears by then that the chat was taken. So one append is tried in the usual
case, and the death, the fullness or the silence of the first costs its chats that moment alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Final

from events.ids import ChatId, WorkerId

STEP: Final = 0.025
"""Seconds after which the next worker acts: more than a commit and its hint take."""

LAST_STEP: Final = 8
"""Workers beyond this rank act together with it: among many, nobody waits long."""


def rank(chat: ChatId, own: WorkerId, peers: Iterable[WorkerId], behind: Collection[WorkerId] = ()) -> int:
    """Return how many of ``peers`` come before ``own`` for this chat.

    Args:
        chat: Which chat.
        own: The worker that asks; it need not be among ``peers``.
        peers: Workers that could take the chat.
        behind: Those that are known not to act in time: they come after all others.
    """
    weight = _weight(chat, own)
    return sum(1 for peer in peers if peer != own and peer not in behind and _weight(chat, peer) > weight)


def ahead(chat: ChatId, own: WorkerId, peers: Iterable[WorkerId]) -> list[WorkerId]:
    """Return the peers that come before ``own`` for this chat."""
    weight = _weight(chat, own)
    return [peer for peer in peers if peer != own and _weight(chat, peer) > weight]


def delay(place: int) -> float:
    """Return after how many seconds the worker of a rank acts."""
    return STEP * min(place, LAST_STEP)


def share(own: WorkerId) -> float:
    """Return a number from 0 to 1 that is the worker's own: what all do now and then, they do not do at once."""
    return int.from_bytes(blake2b(own.encode(), digest_size=4).digest()) / 2**32


def _weight(chat: ChatId, worker: WorkerId) -> bytes:
    return blake2b(f"{chat}\0{worker}".encode(), digest_size=8).digest()
