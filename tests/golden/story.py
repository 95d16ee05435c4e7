"""A log told event by event, for the samples: each event names the status it leads to; its source is the last one's."""

from __future__ import annotations

from typing import Final

from events.content import Content
from events.digest import GENESIS
from events.encoding import encode
from events.envelope import Envelope, Recorded, SourceStatus, Status, StoredEvent
from events.ids import CommandId, WorkerId
from events.messages import Message
from events.parts import TextPart
from events.records import Actor, Decision
from events.vocabulary import Acquired, AttemptStarted, ChatCreated, Event, PolicyRecorded
from tests.golden.pieces_v0_1 import POLICY, T

USER: Final = Actor(kind="user", id="user-1")
WORKER: Final = Actor(kind="worker", id="worker-1")
DIGEST: Final = "a" * 64


def stored_event(
    event: Event, *, version: int, previous: bytes, actor: Actor, source: SourceStatus, dest: Status
) -> StoredEvent:
    """Encode an event of a sample: time, command and salt follow from its version."""
    envelope = Envelope(
        version=version,
        type=event.type,
        schema=event.schema,
        recorded_at=T + version * 1_000_000,
        actor=actor,
        source=source,
        dest=dest,
        command=CommandId(f"command-{version}"),
        index=0,
    )
    encoded = encode(Recorded(envelope, event), salt=version.to_bytes(16, "big"), previous_digest=previous)
    if encoded.blobs:
        msg = "samples are complete in themselves"
        raise ValueError(msg)
    return encoded.stored


class Story:
    """The log of one chat, growing."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.stored: list[StoredEvent] = []
        self._epoch = 0

    def add(self, event: Event, dest: Status, actor: Actor = WORKER) -> Story:
        """Add the next event."""
        last = self.stored[-1] if self.stored else None
        self.events.append(event)
        self.stored.append(
            stored_event(
                event,
                version=len(self.events),
                previous=GENESIS if last is None else last.digest,
                actor=actor,
                source="none" if last is None else last.envelope.dest,
                dest=dest,
            )
        )
        return self

    def created(self, chat: str, flags: tuple[int, ...] = ()) -> Story:
        """A chat with a question, held by a worker that recorded its policy: versions 1 to 3, then epoch 1."""
        question = Message(role="user", parts=(TextPart(text=Content("What is on the disk?")),), author="user-1")
        event = ChatCreated(
            chat=chat, owner="user-1", agent="assistant", release="0.1.0", flags=flags, added=(question,)
        )
        self.add(event, "pending", USER).acquired()
        return self.add(PolicyRecorded(digest=DIGEST, policy=POLICY), "running")

    def acquired(self) -> Story:
        """A worker takes the chat."""
        self._epoch += 1
        return self.add(Acquired(worker=WorkerId("worker-1"), epoch=self._epoch, release="0.1.0"), "running")

    def started(self, attempt: int = 1, rule: str = "D11", action: str = "generate") -> Story:
        """An attempt to generate starts."""
        return self.add(AttemptStarted(attempt=attempt, kind="generate", decision=decision(rule, action)), "running")


def decision(rule: str, action: str) -> Decision:
    """Return a decision under the recorded policy."""
    passed = ("D0", "D1", "D2") if rule == "D11" else ()
    return Decision(rule=rule, action=action, facts={"steps": 0, "manual": False}, passed=passed, policy=DIGEST)


def said(text: str) -> tuple[TextPart, ...]:
    """Return the parts of a plain text."""
    return (TextPart(text=Content(text)),)
