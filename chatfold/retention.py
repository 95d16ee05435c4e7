"""Finding the chats whose retention has run out. Deleting them is the application's.

No column tells it: headers are read a page at a time, and each says in its control how long its chat is kept.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from msgspec.structs import replace

from events.envelope import AT_REST
from store.contract import Header, Store
from store.query import ChatQuery

_PAGE: Final = 500
"""Headers read at once."""


def may_be_deleted(header: Header) -> bool:
    """Whether a chat may be deleted: no turn is under way, or it was imported and does not run here."""
    return header.foreign or header.status in AT_REST


async def expired(store: Store, query: ChatQuery) -> AsyncGenerator[Header, None]:
    """Yield the headers of chats that match and whose retention has run out, unless a turn is under way.

    Each is read again before it is yielded: what was changed meanwhile is kept for longer.

    Raises:
        StoreUnavailable: The store cannot be read.
    """
    now = await store.now()
    page = replace(query, before=None, limit=_PAGE)
    while headers := await store.list_chats(page):
        for header in headers:
            if not _is_over(header, now):
                continue
            loaded = await store.load_header(header.chat)
            if loaded is not None and _is_over(loaded.header, loaded.now):
                yield loaded.header
        page = replace(page, before=(headers[-1].listed_at, headers[-1].chat))


def _is_over(header: Header, now: int) -> bool:
    end = header.expires_at
    return end is not None and end <= now and may_be_deleted(header)
