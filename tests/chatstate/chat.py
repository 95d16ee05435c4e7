"""A chat in memory that commands drive: decide, evolve, and the commands and events so far.

It owns no rules: what it does, ``decide`` and ``evolve`` do. Each command is fenced with what the chat's state says, so
that a test says only what it is about.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from chatstate import commands as c
from chatstate.classify import X, classify
from chatstate.decide import Decided, decide
from events.content import Content
from events.control import Control, OpenCall, encode_control
from events.digest import GENESIS
from events.encoding import encode
from events.envelope import Envelope, Recorded, StoredEvent
from events.ids import CommandId
from events.messages import Message
from events.records import Actor
from events.reducer import evolve
from events.state import ChatState, initial_state

START = 1_700_000_000_000_000
"""Time of the first command, in microseconds UTC; each next one comes a second later."""

SECOND = 1_000_000


class Timed(NamedTuple):
    """A command and the time at which it is given."""

    command: c.AnyCommand
    now: int


def record(state: ChatState, decided: Decided, command: str = "c") -> Recorded:
    """Wrap a decided event as the store would."""
    envelope = Envelope(
        version=state.control.version + 1,
        type=decided.event.type,
        schema=decided.event.schema,
        recorded_at=decided.recorded_at,
        actor=Actor(kind="user", id="ann"),
        source=decided.source,
        dest=decided.dest,
        command=CommandId(command),
        index=0,
    )
    return Recorded(envelope=envelope, event=decided.event)


def store(recorded: Recorded, previous: bytes = GENESIS) -> StoredEvent:
    """Return the stored form of an event."""
    return encode(recorded, salt=bytes(16), previous_digest=previous).stored


def trace(state: ChatState) -> tuple[object, ...]:
    """All that a state holds, in a form that shares nothing with it."""
    transcript = state.need_transcript("a test")
    parts = (transcript.queued, transcript.results, transcript.arguments, transcript.policies)
    return (
        encode_control(state.control),
        tuple(transcript.messages),
        tuple(tuple(sorted(part.items(), key=lambda item: str(item[0]))) for part in parts),
        transcript.title,
        transcript.hint,
    )


class Chat:
    """A chat, with the commands that made it and the log that they gave."""

    def __init__(self, state: ChatState | None = None) -> None:
        self.state = initial_state() if state is None else state
        self.now = START
        self.commands: list[Timed] = []
        self.log: list[Recorded] = []

    @property
    def control(self) -> Control:
        return self.state.control

    @property
    def x(self) -> X:
        return classify(self.control)

    @property
    def calls(self) -> tuple[OpenCall, ...]:
        return self.control.indexes.open_calls

    @property
    def messages(self) -> list[Message]:
        return [item.message for item in self.state.need_transcript("a test").messages]

    def do(self, command: c.AnyCommand, *, now: int | None = None) -> Recorded:
        """Give a command; a refusal is raised and leaves the chat as it was."""
        self.now = self.now + SECOND if now is None else now
        recorded = record(self.state, decide(self.state, command, self.now), f"c{len(self.log)}")
        self.state = evolve(self.state, recorded)
        self.commands.append(Timed(command, self.now))
        self.log.append(recorded)
        return recorded

    def all(self, commands: Iterable[c.AnyCommand]) -> Chat:
        for command in commands:
            self.do(command)
        return self

    def fence(self) -> c.Fence:
        """What a worker that holds this chat believes."""
        running = self.control.running
        return c.Fence(
            epoch=self.control.epoch,
            history_version=self.control.history_version,
            attempt=running.attempt if running is not None else None,
        )

    def texts(self) -> list[str]:
        """Role and text of each message, a call by its tool and a result by its reason or output."""
        return [f"{message.role}: {' + '.join(_shown(message))}" for message in self.messages]


def _shown(message: Message) -> list[str]:
    shown = []
    for part in message.parts:
        reason = getattr(part, "reason", None)
        value = next((v for n in ("text", "name", "output") if (v := getattr(part, n, None)) is not None), "")
        if isinstance(value, Content):
            value = value.value if value.available else f"<{value.size} B erased>"
        shown.append(str(value if reason is None else reason))
    return shown
