"""Small logs for tests: events are encoded one after the other, with salts and times derived from their versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import cast

from msgspec import Struct

from events.content import Content, Json
from events.digest import GENESIS
from events.effects import EventBase
from events.encoding import encode
from events.envelope import Envelope, Recorded, SourceStatus, Status, StoredEvent
from events.ids import CommandId
from events.messages import Message, Role
from events.parts import TextPart
from events.records import Actor
from events.upcasting import REGISTRY, Registry
from events.values import DEFAULT_LIMITS, Limits
from events.vocabulary import Event

TIME = 1_790_000_000_000_000
"""Microseconds UTC of the first event; each later one comes a second after."""


class Draft(Struct, frozen=True, kw_only=True):
    """What surrounds an event, but for what follows from its place."""

    actor: Actor = Actor(kind="user", id="user-1")
    source: SourceStatus = "waiting"
    dest: Status = "waiting"
    command: CommandId = CommandId("command-1")
    index: int = 0


class Log(Struct):
    """A chat's log and its blobs, growing."""

    events: list[StoredEvent] = []
    blobs: dict[str, bytes] = {}
    limits: Limits = DEFAULT_LIMITS
    registry: Registry = REGISTRY

    def add(self, event: EventBase, draft: Draft | None = None) -> StoredEvent:
        """Encode the next event."""
        draft = Draft() if draft is None else draft
        version = len(self.events) + 1
        envelope = Envelope(
            version=version,
            type=event.type,
            schema=event.schema,
            recorded_at=TIME + version * 1_000_000,
            actor=draft.actor,
            source=draft.source,
            dest=draft.dest,
            command=draft.command,
            index=draft.index,
        )
        encoded = encode(
            Recorded(envelope, cast("Event", event)),  # or a stand-in: a test's registry has types of its own
            salt=hashlib.sha256(f"salt {version}".encode()).digest(),
            previous_digest=self.events[-1].digest if self.events else GENESIS,
            limits=self.limits,
            registry=self.registry,
        )
        self.events.append(encoded.stored)
        self.blobs.update(encoded.blobs)
        return encoded.stored


def log_of(events: Iterable[EventBase], limits: Limits = DEFAULT_LIMITS) -> Log:
    """Return a log of these events."""
    log = Log(limits=limits)
    for event in events:
        log.add(event)
    return log


def text(value: Json, role: Role = "user") -> Message:
    """Return a message of one text part."""
    return Message(role=role, parts=(TextPart(text=Content(value)),))
