"""Which release levels can read an event: what was added to the vocabulary since the first level, and by what. Pure.

A release that does not know a field refuses the event. So a new field is written only into chats of its level or above;
which level a chat has, and a database, is the store's matter (``store.schema``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from events.effects import Effects
from events.envelope import Recorded
from events.parts import ToolCallPart
from events.vocabulary import Event, PolicyRecorded

FIRST: Final = 1
"""The level of the first release."""

RECONCILE: Final = 2
"""The level from which tools and calls may say that they can be asked (``reconcile``)."""


def level_of(event: Event) -> int:
    """Return the lowest level of releases that can read an event."""
    match event:
        case PolicyRecorded():
            asked = any(tool.reconcile for tool in event.policy.tools)
        case Effects():
            asked = any(
                isinstance(part, ToolCallPart) and part.reconcile for message in event.added for part in message.parts
            )
        case _:
            asked = False
    return RECONCILE if asked else FIRST


def level_of_all(log: Iterable[Recorded]) -> int:
    """Return the lowest level of releases that can read all of some events."""
    return max((level_of(recorded.event) for recorded in log), default=FIRST)
