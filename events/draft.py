"""A state under change: what the reducer writes on before it is frozen into the next ``ChatState``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final, TypeVar, final

from msgspec import Struct
from msgspec.structs import replace

from events.content import Absent, Content
from events.control import QueueItem
from events.effects import Effects
from events.ids import CallKey, MessageId, message_id, message_of
from events.indexes import advance, find_call, index, mark_call
from events.messages import Message, QueuedMessage, Usage
from events.parts import ToolResultPart
from events.records import Answer, Policy
from events.state import ChatState
from events.transcript import Messages, Transcript, TranscriptMessage, empty_transcript

_T = TypeVar("_T")

_NO_TRANSCRIPT: Final = empty_transcript()

BOUNDARY_MESSAGES: Final = 3
"""Messages that a boundary is made of: the summary, and the mark for clients with its result."""


@final
class Draft:
    """A copy of a state that may be changed. Without a transcript it keeps control alone.

    ``history_changed``, ``queue_changed`` and ``turn_opened`` say what the event under way did.
    The reducer takes them back.
    """

    __slots__ = (
        "_before",
        "_fresh",
        "_messages",
        "_owned",
        "arguments",
        "control",
        "hint",
        "history_changed",
        "loaded",
        "policies",
        "queue_changed",
        "queued",
        "results",
        "title",
        "turn_label",
        "turn_opened",
        "usages",
    )

    def __init__(self, state: ChatState) -> None:
        before = self._before = state.transcript
        self.control = state.control.clone()
        self.loaded = before is not None
        kept = before if before is not None else _NO_TRANSCRIPT
        self._messages = kept.messages
        self._fresh: list[TranscriptMessage] = []
        self.queued: Mapping[MessageId, QueuedMessage] = kept.queued
        self.results: Mapping[CallKey, ToolResultPart] = kept.results
        self.arguments: Mapping[CallKey, Content] = kept.arguments
        self.policies: Mapping[str, Policy] = kept.policies
        self.title = kept.title
        self.turn_label = kept.turn_label
        self.hint = kept.hint
        self._owned: tuple[str, ...] = ()
        self.usages: list[Usage] = []
        self.history_changed = self.queue_changed = self.turn_opened = False

    @property
    def messages(self) -> Messages:
        """The messages so far."""
        if self._fresh:
            self._messages = self._messages.extended(self._fresh)
            self._fresh = []
        return self._messages

    @messages.setter
    def messages(self, messages: Messages) -> None:
        self._messages, self._fresh = messages, []

    def own(self, name: str) -> dict[Any, Any]:
        """Return one of the maps to be written on: a copy of what older states have, made once."""
        if name not in self._owned:
            self._owned = (*self._owned, name)
            setattr(self, name, dict(getattr(self, name)))
        own: dict[Any, Any] = getattr(self, name)
        return own

    def _drop(self, name: str, key: str) -> None:
        if key in getattr(self, name):
            del self.own(name)[key]

    def freeze(self) -> ChatState:
        """Return the state; the draft must not be changed after."""
        if self.usages:
            self.control.usage = self.control.usage.plus(self.usages)
        before = self._before
        if before is None:
            return ChatState(control=self.control, transcript=None)
        same = before.title is self.title and before.hint is self.hint and before.policies is self.policies
        same = same and before.turn_label is self.turn_label
        if same and not self._fresh and not self._owned and before.messages is self._messages:
            return ChatState(control=self.control, transcript=before)
        return ChatState(
            control=self.control,
            transcript=Transcript(
                messages=self.messages,
                queued=self.queued,
                results=self.results,
                arguments=self.arguments,
                policies=self.policies,
                title=self.title,
                turn_label=self.turn_label,
                hint=self.hint,
            ),
        )

    def apply(self, effects: Effects, version: int) -> None:
        """Apply the plain effects of the event at ``version``, in the order that ``Effects`` states."""
        if effects.removed_from is not None:
            self._remove_from(effects.removed_from)
        place = 0
        entering: Iterable[Message] = effects.added
        if effects.answers:
            entering = chain(map(self._answer, effects.answers), effects.added)
        for message in entering:
            self._enter(message_id(version, place), message, version)
            place += 1
        if effects.queued or effects.dequeued or effects.queue_order is not None or effects.promoted:
            self._apply_to_queue(effects, version, place)

    def _apply_to_queue(self, effects: Effects, version: int, place: int) -> None:
        for queued in effects.queued:
            self._enqueue(message_id(version, place), queued)
            place += 1
        for gone in effects.dequeued:
            self._dequeue(gone)
        if effects.queue_order is not None:
            self._reorder(effects.queue_order)
        for promoted in effects.promoted:
            self._promote(promoted, version)

    def record_result(self, result: ToolResultPart) -> None:
        """Keep ``result`` beside history until its batch is committed."""
        indexes = self.control.indexes
        indexes.open_calls = mark_call(indexes.open_calls, result.call, recorded=True, result_error=result.is_error)
        if self.loaded:
            self.own("results")[result.call] = result

    def edit_queued(self, target: MessageId, queued: QueuedMessage) -> None:
        """Replace the body of a queued message."""
        self.queue_changed = True
        item = QueueItem(id=target, model=queued.model, effort=queued.effort)
        self.control.queue = tuple(item if old.id == target else old for old in self.control.queue)
        if self.loaded:
            self.own("queued")[target] = queued

    def drop_boundary(self, boundary: MessageId) -> None:
        """Take a boundary and the messages that were re-inserted after it out of history.

        The turn goes on as it was: its steps count from its last resume, which messages alone do not tell.
        """
        position = self.messages.find(boundary)
        if position is None:
            return
        old = self.control.indexes
        self.messages = Messages([*self.messages.before(position), *after_boundary(self.messages, position)])
        self.control.indexes = index(self.messages)
        self.control.indexes.steps = old.steps
        self.control.indexes.stop_after = old.stop_after
        self.control.indexes.more_step = old.more_step
        self.history_changed = True

    def erase(self, targets: frozenset[MessageId]) -> None:
        """Erase the content of messages in history with their re-inserted copies, of queued ones, and of arguments.

        What the user asked of a summary that has not come yet, and the label of the turn, go with any of them: see
        ``events.erasure``.
        """
        self.turn_label = erase_value(self.turn_label) if self.turn_label is not None else None
        self.hint = erase_value(self.hint) if self.hint is not None else None
        self.messages = Messages(
            [
                TranscriptMessage(item.id, erased(item.message), item.version) if self._named(item, targets) else item
                for item in self.messages
            ]
        )
        self.queued = {i: erased(q) if i in targets else q for i, q in self.queued.items()}
        self.arguments = {k: erase_value(a) if message_of(k) in targets else a for k, a in self.arguments.items()}

    def _named(self, item: TranscriptMessage, targets: frozenset[MessageId]) -> bool:
        # The origin of an imported message is an id of another chat.
        copied = item.version > self.control.imported_to and item.message.origin in targets
        return item.id in targets or copied

    def _remove_from(self, target: MessageId) -> None:
        position = self.messages.find(target)
        if position is None:
            return
        self.messages = self.messages.before(position)
        self.control.indexes = index(self.messages)
        open_keys = {call.key for call in self.control.indexes.open_calls}
        self.results = {key: result for key, result in self.results.items() if key in open_keys}
        self.arguments = {}
        self.history_changed = True

    def _answer(self, answer: Answer) -> Message:
        if answer.reason is not None:
            part = ToolResultPart(call=answer.call, is_error=True, reason=answer.reason)
        else:
            part = self.results.get(answer.call) or self._stand_in(answer.call)
        return Message(role="tool", parts=(part,))

    def _stand_in(self, call: CallKey) -> ToolResultPart:
        # Without the transcript the body is not here, but control knows whether the recorded result is an error.
        calls = self.control.indexes.open_calls
        place = find_call(calls, call)
        return ToolResultPart(call=call, is_error=place is not None and calls[place].result_error)

    def _enter(self, identity: MessageId, message: Message, version: int) -> None:
        self.history_changed = True
        if advance(self.control.indexes, identity, message):
            self.turn_opened = True
        if not self.loaded:
            return
        self._fresh.append(TranscriptMessage(identity, message, version))
        if not self.results and not self.arguments:
            return
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                self._drop("results", part.call)
                self._drop("arguments", part.call)

    def _enqueue(self, identity: MessageId, queued: QueuedMessage) -> None:
        self.queue_changed = True
        item = QueueItem(id=identity, model=queued.model, effort=queued.effort)
        self.control.queue = (*self.control.queue, item)
        if self.loaded:
            self.own("queued")[identity] = queued

    def _dequeue(self, target: MessageId) -> None:
        self.queue_changed = True
        self.control.queue = tuple(item for item in self.control.queue if item.id != target)
        self._drop("queued", target)

    def _reorder(self, order: tuple[MessageId, ...]) -> None:
        place = {target: i for i, target in enumerate(order)}
        last = len(order)
        ordered = tuple(sorted(self.control.queue, key=lambda item: place.get(item.id, last)))
        self.queue_changed = self.queue_changed or ordered != self.control.queue
        self.control.queue = ordered

    def _promote(self, target: MessageId, version: int) -> None:
        item = next((i for i in self.control.queue if i.id == target), None)
        queued = self.queued.get(target)
        self._dequeue(target)
        if item is not None:
            self.control.model = item.model or self.control.model
            self.control.effort = item.effort or self.control.effort
        # A queued message is a user's that opens a turn: that is all that control needs where its body is not here.
        body = queued.message if queued is not None else Message(role="user", parts=())
        self._enter(target, body, version)


def erased(record: _T) -> _T:
    """Return a struct with every content value in it erased (sizes stay)."""
    if not isinstance(record, Struct):
        return record
    changes = {name: erase_value(getattr(record, name)) for name in record.__struct_fields__}
    return replace(record, **changes)


def erase_value(value: Any) -> Any:
    """Return ``value`` with every content value in it erased (sizes stay)."""
    if isinstance(value, Content):
        return Content(Absent.ERASED, value.size)
    if isinstance(value, tuple):
        return tuple(erase_value(item) for item in value)
    return erased(value)


def after_boundary(messages: Messages, position: int) -> list[TranscriptMessage]:
    """Return what follows the boundary that begins at ``position``, without the messages re-inserted by it."""
    # A boundary is its marked messages and the user messages for the model alone that directly follow: in a fork they
    # share their version with other messages.
    at = position
    while at < len(messages) and messages[at].message.boundary is not None and at < position + BOUNDARY_MESSAGES:
        at += 1
    while at < len(messages) and _for_model_alone(messages[at].message):
        at += 1
    return [messages[i] for i in range(at, len(messages))]


def _for_model_alone(message: Message) -> bool:
    return message.role == "user" and message.visibility == "model" and message.boundary is None
