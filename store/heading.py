"""The header row of a chat, derived from its fold, and the little that only the header before it knows."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from events.control import Control, encode_control
from events.envelope import Recorded
from events.ids import ChatId
from events.state import ChatState
from events.vocabulary import ChatCreated, ChatForked, Event, TitleChanged
from store.contract import Header


def header_of(
    state: ChatState,
    digest: bytes,
    *,
    chat: ChatId,
    title: str | None,
    foreign: bool,
    reader_level: int,
    listed_at: int | None = None,
) -> Header:
    """Return the header row that belongs to ``state``: what is not given is derived from the fold.

    ``chat`` is the id that the chat has here: a log that was imported under another one says its first id for ever.
    ``reader_level`` is the one that the chat had: it is never changed. ``listed_at``: see :class:`Header`; None where
    it is not known how the chat came to its status.
    """
    control = state.control
    due = control.action.deadline if control.action is not None else control.not_before
    return Header(
        chat=chat,
        owner=control.owner,
        agent=control.agent,
        status=control.status,
        interrupting=control.interrupting,
        archived=control.archived,
        queued=len(control.queue),
        version=control.version,
        history_version=control.history_version,
        queue_version=control.queue_version,
        epoch=control.epoch,
        holder=control.holder,
        due_at=due,
        created_at=control.created_at,
        updated_at=control.updated_at,
        listed_at=control.updated_at if listed_at is None else listed_at,
        attempt=control.running.attempt if control.running is not None else None,
        control=encode_control(control),
        digest=digest,
        title=title,
        labels=control.labels,
        parent=ChatId(control.parent) if control.parent is not None else None,
        pinned=control.pinned,
        foreign=foreign,
        reader_level=reader_level,
    )


def listed_at(before: Header | None, control: Control) -> int:
    """Return what lists order a chat by, after the header before it. See :class:`Header`."""
    runs_on = before is not None and before.status == control.status == "running"
    return before.listed_at if before is not None and runs_on else control.updated_at


def title_of(before: Header | None, recorded: list[Recorded], kinds: AbstractSet[type[Event]]) -> str | None:
    """Return the title after some events, which are of these ``kinds``, for the header."""
    title = before.title if before is not None else None
    if _TITLING_TYPES.isdisjoint(kinds):
        return title
    for item in recorded:
        event = item.event
        if isinstance(event, _TITLING):
            title = event.title.text if event.title is not None else None
    return title


_TITLING: Final = (TitleChanged, ChatCreated, ChatForked)
_TITLING_TYPES: Final = frozenset(_TITLING)
