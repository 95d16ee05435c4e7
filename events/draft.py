"""A state under change: what the reducer writes on before it is frozen into the next ``ChatState``."""

from __future__ import annotations

from typing import TypeVar, final

from msgspec import Struct
from msgspec.structs import fields, replace

from events.content import Absent, Content
from events.control import QueueItem
from events.ids import CallKey, MessageId, message_id
from events.indexes import advance, index, mark_calls
from events.messages import Message, QueuedMessage
from events.parts import ToolResultPart
from events.records import Answer
from events.state import ChatState
from events.transcript import Messages, Transcript, TranscriptMessage
from events.vocabulary import Effects

_T = TypeVar("_T")


@final
class Draft:
    """A copy of a state that may be changed. Without a transcript it keeps control alone.

    ``history_changed``, ``queue_changed`` and ``turn_opened`` say what the event under way did.
    """

    __slots__ = (
        "arguments",
        "control",
        "hint",
        "history_changed",
        "loaded",
        "messages",
        "policies",
        "queue_changed",
        "queued",
        "results",
        "title",
        "turn_opened",
    )

    def __init__(self, state: ChatState) -> None:
        transcript = state.transcript
        self.control = state.control.clone()
        self.loaded = transcript is not None
        self.messages = transcript.messages if transcript else Messages()
        self.queued = dict(transcript.queued) if transcript else {}
        self.results = dict(transcript.results) if transcript else {}
        self.arguments = dict(transcript.arguments) if transcript else {}
        self.policies = dict(transcript.policies) if transcript else {}
        self.title = transcript.title if transcript else None
        self.hint = transcript.hint if transcript else None
        self.begin()

    def begin(self) -> None:
        """Forget what the event before did."""
        self.history_changed = False
        self.queue_changed = False
        self.turn_opened = False

    def freeze(self) -> ChatState:
        """Return the state; the draft must not be changed after."""
        if not self.loaded:
            return ChatState(control=self.control, transcript=None)
        return ChatState(
            control=self.control,
            transcript=Transcript(
                messages=self.messages,
                queued=self.queued,
                results=self.results,
                arguments=self.arguments,
                policies=self.policies,
                title=self.title,
                hint=self.hint,
            ),
        )

    def apply(self, effects: Effects, version: int) -> None:
        """Apply the plain effects of the event at ``version``, in the order that ``Effects`` states."""
        if effects.removed_from is not None:
            self._remove_from(effects.removed_from)
        place = 0
        for answer in effects.answers:
            self._enter(message_id(version, place), self._answer(answer), version)
            place += 1
        for message in effects.added:
            self._enter(message_id(version, place), message, version)
            place += 1
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
        indexes.open_calls = mark_calls(
            indexes.open_calls, frozenset((result.call,)), recorded=True, result_error=result.is_error
        )
        if self.loaded:
            self.results[result.call] = result

    def edit_queued(self, target: MessageId, queued: QueuedMessage) -> None:
        """Replace the body of a queued message."""
        self.queue_changed = True
        item = QueueItem(id=target, model=queued.model, effort=queued.effort)
        self.control.queue = tuple(item if old.id == target else old for old in self.control.queue)
        if self.loaded:
            self.queued[target] = queued

    def drop_boundary(self, boundary: MessageId) -> None:
        """Take a boundary and the messages that its event re-inserted out of history."""
        position = self.messages.find(boundary)
        if position is None:
            return
        version = self.messages[position].version
        self._keep([m for m in self.messages if m.version != version])

    def erase(self, targets: frozenset[MessageId]) -> None:
        """Erase the content of messages in history, of queued ones, and of what is recorded for them."""
        items = [TranscriptMessage(m.id, erased(m.message), m.version) if m.id in targets else m for m in self.messages]
        self.messages = Messages(items)
        self.queued = {i: erased(q) if i in targets else q for i, q in self.queued.items()}

    def _keep(self, items: list[TranscriptMessage]) -> None:
        self.messages = Messages(items)
        self.control.indexes = index(self.messages)
        self.history_changed = True

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
        known = next((c for c in self.control.indexes.open_calls if c.key == call), None)
        return ToolResultPart(call=call, is_error=known is not None and known.result_error)

    def _enter(self, identity: MessageId, message: Message, version: int) -> None:
        self.history_changed = True
        self.turn_opened = self.turn_opened or message.opens_turn
        advance(self.control.indexes, identity, message)
        if not self.loaded:
            return
        self.messages = self.messages.append(TranscriptMessage(identity, message, version))
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                self.results.pop(part.call, None)
                self.arguments.pop(part.call, None)

    def _enqueue(self, identity: MessageId, queued: QueuedMessage) -> None:
        self.queue_changed = True
        item = QueueItem(id=identity, model=queued.model, effort=queued.effort)
        self.control.queue = (*self.control.queue, item)
        if self.loaded:
            self.queued[identity] = queued

    def _dequeue(self, target: MessageId) -> None:
        self.queue_changed = True
        self.control.queue = tuple(item for item in self.control.queue if item.id != target)
        self.queued.pop(target, None)

    def _reorder(self, order: tuple[MessageId, ...]) -> None:
        self.queue_changed = True
        place = {target: i for i, target in enumerate(order)}
        last = len(order)
        self.control.queue = tuple(sorted(self.control.queue, key=lambda item: place.get(item.id, last)))

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
    changes = {f.name: _erase_value(getattr(record, f.name)) for f in fields(record)}
    return replace(record, **changes)


def _erase_value(value: object) -> object:
    if isinstance(value, Content):
        return Content(Absent.ERASED, value.size)
    if isinstance(value, tuple):
        return tuple(_erase_value(item) for item in value)
    return erased(value)
