"""The feed as a subscription: pages of it, and hints between them. One for all back ends.

Which events are safe to hand out, and in which order, is each back end's matter (``read_feed``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Final

from events.envelope import StoredEvent
from events.ids import ChatId
from store.contract import FeedEvent, FeedPosition, Hint, Store
from store.errors import FeedEventUnreadable, MalformedRow

AHEAD: Final = "the position is ahead of the feed's end"
"""Why a feed was moved, where its database is an older one."""

_PAGE: Final = 500
"""Events asked for at once."""

_POLL: Final = 0.5
"""Seconds after which the feed is read although no hint came."""

_SOON: Final = 0.02
"""Seconds after which it is read again where a hint came and its events did not: another write holds them back."""


def until_damage(events: Iterable[FeedEvent]) -> list[FeedEvent]:
    """Return the events before the first that cannot be read.

    Raises:
        FeedEventUnreadable: That is the first of all.
    """
    found: list[FeedEvent] = []
    try:
        found.extend(events)
    except FeedEventUnreadable:
        if not found:
            raise
    return found


def fed(position: FeedPosition, chat: str, read: Callable[[], StoredEvent]) -> FeedEvent:
    """Return the event that ``read`` gives, at its place.

    Raises:
        FeedEventUnreadable: It cannot be read.
    """
    try:
        return FeedEvent(position, ChatId(chat), read())
    except MalformedRow as error:
        raise FeedEventUnreadable(position, chat, str(error)) from error


@asynccontextmanager
async def follow(store: Store, after: FeedPosition) -> AsyncIterator[AsyncIterator[FeedEvent]]:
    """Follow the feed of ``store`` behind ``after`` while the context is entered."""
    async with store.hints() as hints, aclosing(_follow(store, after, hints)) as events:
        yield events


async def _follow(store: Store, after: FeedPosition, hints: AsyncIterator[Hint]) -> AsyncGenerator[FeedEvent, None]:
    wait = 0.0
    while True:
        page = await store.read_feed(after=after, limit=_PAGE)
        for event in page:
            after = event.position
            yield event
        if page:
            wait = 0.0
            continue
        wait = await _pause(hints, wait)


async def _pause(hints: AsyncIterator[Hint], wait: float) -> float:
    """Wait for a hint or until it is time to look again; return how long to wait next time if nothing is found."""
    try:
        async with asyncio.timeout(wait or _POLL):
            await anext(hints)
    except TimeoutError:
        return min(2 * wait, _POLL) if wait else 0.0
    except StopAsyncIteration:
        await asyncio.sleep(_POLL)
        return 0.0
    return _SOON
