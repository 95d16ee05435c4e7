"""What a handler works with, and the checks and effects that several handlers share."""

from __future__ import annotations

from typing import NoReturn, TypedDict

from msgspec import Struct

from chatstate.cancellations import answers, closed
from chatstate.classify import X
from chatstate.commands import Fence
from chatstate.errors import QueuedNotFound, QueueFull, Refusal, StaleFence, TransitionNotAllowed
from events.control import Control
from events.envelope import Status
from events.ids import MessageId
from events.messages import Message, QueuedMessage
from events.records import Answer
from events.state import ChatState


class Ending(TypedDict, total=False):
    """Effects of ending a turn, as keyword arguments of an event."""

    answers: tuple[Answer, ...]
    added: tuple[Message, ...]
    queued: tuple[QueuedMessage, ...]
    promoted: tuple[MessageId, ...]


class Context(Struct, frozen=True, kw_only=True):
    """The state a command meets: ``dest`` is where the machine leads, ``now`` the event's recorded_at (microseconds
    UTC)."""

    trigger: str
    state: ChatState
    x: X
    dest: Status
    now: int

    @property
    def control(self) -> Control:
        """The state's control."""
        return self.state.control

    @property
    def version(self) -> int:
        """Version of the event under way."""
        return self.control.version + 1

    @property
    def head(self) -> tuple[MessageId, ...]:
        """The queue's head, if there is one."""
        return tuple(item.id for item in self.control.queue[:1])

    def refuse(self, error: type[Refusal], reason: str) -> NoReturn:
        """Raise ``error`` with the trigger and the state."""
        raise error(self.trigger, self.x, reason)

    def not_allowed(self, reason: str) -> NoReturn:
        """Refuse the transition for a reason that the table cannot say."""
        self.refuse(TransitionNotAllowed, reason)

    def check_queue(self, limit: int) -> None:
        """Refuse where the queue is full."""
        if len(self.control.queue) >= limit:
            raise QueueFull(self.trigger, self.x, limit)

    def check_queued(self, target: MessageId) -> None:
        """Refuse where ``target`` is not in the queue."""
        if all(item.id != target for item in self.control.queue):
            self.refuse(QueuedNotFound, f"no message {target} is queued")

    def check_fence(self, fence: Fence, *, attempt: bool = False) -> None:
        """Refuse a worker whose fence does not hold; ``attempt`` demands that its attempt is the one under way."""
        control = self.control
        if fence.epoch != control.epoch:
            self.refuse(StaleFence, f"epoch {fence.epoch} was overtaken by {control.epoch}")
        if fence.history_version not in (None, control.history_version):
            self.refuse(StaleFence, f"history moved from version {fence.history_version} to {control.history_version}")
        running = control.running.attempt if control.running is not None else None
        if (attempt or fence.attempt is not None) and (running is None or fence.attempt != running):
            self.refuse(StaleFence, f"attempt {fence.attempt} is not under way (now: {running})")

    def answers(self) -> tuple[Answer, ...]:
        """Answer all open calls for the reason of this trigger."""
        return answers(self.control, self.trigger)

    def end_turn(self, partial: Message | None = None) -> Ending:
        """Effects of ending the turn: open calls answered, what is kept of an answer with its own calls closed."""
        given = self.answers()
        kept = closed(partial, self.version, len(given)) if partial is not None else ()
        return Ending(answers=given, added=kept)
