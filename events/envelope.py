"""The envelope of an event, in its two forms: as it is read (``Recorded``) and as it is stored (``StoredEvent``)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from events.ids import CommandId
from events.records import Actor
from events.vocabulary import Event

Status: TypeAlias = Literal["pending", "running", "requires_action", "waiting", "error"]
"""The five statuses of a chat."""

AT_REST: Final[tuple[Status, ...]] = ("waiting", "error")
"""The statuses in which no turn is under way: nobody owes the chat anything but its user."""

SourceStatus: TypeAlias = Status | Literal["none"]
"""A status, or ``none`` before a chat exists."""


class Envelope(Struct, frozen=True, kw_only=True, gc=False):
    """What surrounds an event's facts.

    ``recorded_at`` is microseconds UTC; ``index`` counts the events of one command's append, so (chat, command id) is
    unique at index 0.
    """

    version: int
    type: str
    schema: int
    recorded_at: int
    actor: Actor
    source: SourceStatus
    dest: Status
    command: CommandId
    index: int


class StoredEvent(Struct, frozen=True, kw_only=True, gc=False):
    """An event as its bytes were written: the envelope in columns, facts and content as they are hashed.

    ``content`` is empty where the event has none. See ``events.codec`` for both byte forms and ``events.digest`` for
    the chain.
    """

    envelope: Envelope
    facts: bytes
    content: bytes
    digest: bytes


class Recorded(Struct, frozen=True, gc=False):
    """An event as fold, audit and people read it."""

    envelope: Envelope
    event: Event

    @property
    def version(self) -> int:
        """The event's position in its chat, from 1."""
        return self.envelope.version
