"""The feed: the committed events of all chats in one order, for projections and outboxes of embedding services.

A consumer keeps the cursor of the last item that it took, in the same transaction as what it made of it, and begins
there again: so it sees each event exactly once, whatever happens to it or to the writers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Final

from msgspec import Struct

from events.codec import decode
from events.contentlist import content_blobs
from events.envelope import Recorded
from events.errors import EventsError, InvalidValue
from events.given import checked_kind
from events.ids import ChatId
from store.contract import FEED_START, FeedEvent, FeedPosition, Store
from store.errors import FeedEventUnreadable

_CURSOR: Final = re.compile(r"([0-9]{1,20})-([0-9]{1,20})", re.ASCII)


class FeedItem(Struct, frozen=True, kw_only=True):
    """An event of some chat. ``cursor`` is the place behind it."""

    cursor: str
    chat: ChatId
    recorded: Recorded


def feed_position(cursor: str | None) -> FeedPosition:
    """Return the position that a cursor stands for; None stands for the place before the first event.

    Raises:
        InvalidValue: It is no cursor of a feed.
    """
    if cursor is None:
        return FEED_START
    found = _CURSOR.fullmatch(checked_kind(cursor, str, "$.after", "the cursor of a feed's item"))
    if found is None:
        raise InvalidValue("$.after", "must be the cursor of a feed's item, such as '1042-7'")
    position = FeedPosition(int(found[1]), int(found[2]))
    if max(position) >= 2**63:
        raise InvalidValue("$.after", "must be the cursor of a feed's item: its numbers are too large")
    return position


async def follow_feed(store: Store, after: FeedPosition) -> AsyncGenerator[FeedItem, None]:
    """Yield the decoded events behind ``after``, and then all that come.

    Raises:
        FeedEventUnreadable: One cannot be read; a feed after its cursor goes on behind it.
    """
    async with store.subscribe(after=after) as events:
        async for event in events:
            yield await _item(store, event)


async def _item(store: Store, event: FeedEvent) -> FeedItem:
    try:
        return await _decoded(store, event)
    except EventsError as error:
        raise FeedEventUnreadable(event.position, event.chat, str(error)) from error


async def _decoded(store: Store, event: FeedEvent) -> FeedItem:
    wanted = content_blobs(event.stored.content) if event.stored.content else ()
    blobs = await store.get_blobs(wanted) if wanted else {}
    recorded = decode(event.stored, blobs=blobs)
    return FeedItem(cursor=event.position.cursor, chat=event.chat, recorded=recorded)
