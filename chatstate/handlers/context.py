"""What a handler works with, and the checks and effects that several handlers share."""

from __future__ import annotations

from typing import NoReturn, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from chatstate.cancellations import answers, closed
from chatstate.classify import X
from chatstate.commands import Fence
from chatstate.errors import QueuedNotFound, QueueFull, Refusal, StaleFence, TransitionNotAllowed
from chatstate.table import FENCES
from events.control import Control
from events.envelope import Status
from events.ids import MessageId
from events.messages import Message, QueuedMessage
from events.parts import ToolCallPart, ToolResultPart
from events.records import Answer, AttemptKind, AttemptReport
from events.state import ChatState


class Ending(TypedDict, total=False):
    """Effects of ending a turn, as keyword arguments of an event."""

    answers: tuple[Answer, ...]
    added: tuple[Message, ...]
    queued: tuple[QueuedMessage, ...]
    promoted: tuple[MessageId, ...]


class Context(Struct, frozen=True, kw_only=True, gc=False):
    """The state a command meets.

    ``control`` is the state's, ``dest`` is where the machine leads, ``now`` the event's recorded_at (microseconds UTC).
    """

    trigger: str
    state: ChatState
    control: Control
    x: X
    dest: Status
    now: int

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
            self.refuse(QueuedNotFound, f"no message {target!r} is queued")

    def check_fence(self, fence: Fence) -> None:
        """Refuse a worker whose fence does not hold: the table says what its trigger must name."""
        control, names = self.control, FENCES[self.trigger]
        if fence.epoch != control.epoch:
            self.refuse(StaleFence, f"epoch {fence.epoch} was overtaken by {control.epoch}")
        believed = fence.history_version
        if ("history_version" in names or believed is not None) and believed != control.history_version:
            self.refuse(StaleFence, f"history moved from version {believed} to {control.history_version}")
        running = control.running.attempt if control.running is not None else None
        named = "attempt" in names or fence.attempt is not None or ("attempt if any" in names and running is not None)
        if named and (running is None or fence.attempt != running):
            self.refuse(StaleFence, f"attempt {fence.attempt} is not under way (now: {running})")

    def answers(self) -> tuple[Answer, ...]:
        """Answer all open calls for the reason of this trigger."""
        return answers(self.control, self.trigger)

    def check_attempt_kind(self, *kinds: AttemptKind) -> None:
        """Refuse an outcome that the attempt under way cannot have."""
        running = self.control.running
        if running is not None and running.kind not in kinds:
            self.not_allowed(f"the attempt under way is of kind {running.kind}")

    def check_none_open(self) -> None:
        """Refuse what must not enter history while calls of the last answer are open."""
        if self.control.indexes.open_calls:
            self.not_allowed("calls of the last answer are open")

    def check_none_running(self) -> None:
        """Refuse what would leave calls behind that run."""
        if any(call.runs for call in self.control.indexes.open_calls):
            self.not_allowed("calls of the batch are still running")

    def check_user_message(self, message: Message) -> None:
        """Refuse what is not a plain message of a user, read by people and models alike."""
        plain = not message.interrupted and message.boundary is None and message.context is None
        if message.role != "user" or message.visibility != "both" or not plain:
            self.not_allowed("a message must be of the user and for all to read")
        if any(isinstance(part, ToolCallPart | ToolResultPart) for part in message.parts):
            self.not_allowed("a user's message holds no tool calls or results")

    def check_answer(self, message: Message) -> None:
        """Refuse what is not an answer of a model, read by people and models alike."""
        if message.role != "assistant" or message.visibility != "both" or message.boundary is not None:
            self.not_allowed("a step is an assistant message for all to read")

    def dead_report(self, report: AttemptReport | None) -> AttemptReport | None:
        """Return what is known of a dead holder's attempt; nothing where nobody holds the chat."""
        return report if self.control.holder is not None else None

    def end_turn(self, partial: Message | None = None) -> Ending:
        """Effects of ending the turn: open calls answered, what a dead holder left of its answer kept as interrupted.

        Where nobody holds the chat there is no such answer: what the caller found is of a turn that ended meanwhile.
        """
        given = self.answers()
        if partial is None or self.control.holder is None:
            return Ending(answers=given, added=())
        self.check_answer(partial)
        return Ending(answers=given, added=closed(replace(partial, interrupted=True), self.version, len(given)))


def authored(message: Message, author: str | None) -> Message:
    """Return what takes the place of a message by ``author``, who is its author too unless it names another."""
    return message if message.author is not None else replace(message, author=author)
