"""What only verifying and repairing ask a store: where events stand in the feed, and which blobs a chat is said to use.

Owns this part of the contract of a store (``store.contract``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from events.ids import ChatId


class EventPlace(NamedTuple):
    """Where an event stands in the feed of all chats; ``begins``: it is the first one of its command."""

    version: int
    tx: int
    position: int
    begins: bool


class Auditable(Protocol):
    """The part of a store's contract that tells of what is kept beside the logs."""

    async def read_places(self, chat: ChatId, *, after: int = 0, limit: int) -> Sequence[EventPlace]:
        """Return where the events of ``chat`` behind version ``after`` stand in the feed, by version.

        Raises:
            MalformedRow: One is not as it was written.
        """
        ...

    async def read_uses(self, chat: ChatId) -> frozenset[str]:
        """Return the digests (hex) of the blobs that ``chat`` is said to use."""
        ...

    async def rebuild_uses(self, chat: ChatId, version: int, digests: Sequence[str]) -> bool:
        """Have ``chat`` use exactly those of ``digests`` that are kept, for repair.

        Returns:
            Whether it was done; not where the log of the chat does not end at ``version``.
        """
        ...
