"""What the engine returns to callers."""

from __future__ import annotations

from msgspec import Struct

from chatstate.classify import X, classify
from events.control import Control
from events.effects import Effects
from events.envelope import Status
from events.ids import ChatId, MessageId
from events.ids import message_id as make_message_id
from events.messages import Message
from events.reducer import fold
from events.state import ChatState
from generation.cursor import Cursor
from store.append import Outcome
from store.contract import Store
from store.loading import read_recorded


class Receipt(Struct, frozen=True, kw_only=True):
    """What a command did.

    A command that is repeated under its id gets the receipt of the first time, but for ``repeated``: what became of the
    chat since then is not told here.

    Attributes:
        chat: The chat.
        version: Its version after the command (and what the worker of this process added to the same append).
        status: One of the five statuses.
        state: The execution state.
        messages: Ids of messages that the command put into history, answers to open calls first.
        queued: Ids of messages that it put into the queue.
        repeated: The command id was used before with the same content: nothing new happened.
        cursor: The position in the chat's stream just before the command: from there on the stream tells what the
            command did and what came of it.
    """

    chat: ChatId
    version: int
    status: Status
    state: X
    messages: tuple[MessageId, ...] = ()
    queued: tuple[MessageId, ...] = ()
    repeated: bool = False
    cursor: str


class QueueEntry(Struct, frozen=True, kw_only=True):
    """A message that waits in a chat's queue, with the model and effort that its turn shall have (None: the chat's)."""

    id: MessageId
    message: Message
    model: str | None = None
    effort: str | None = None


def queue_entries(state: ChatState) -> tuple[QueueEntry, ...]:
    """Return the queue of a chat in the order of promotion; needs the transcript."""
    bodies = state.need_transcript("read the queue").queued
    return tuple(
        QueueEntry(id=item.id, message=bodies[item.id].message, model=item.model, effort=item.effort)
        for item in state.control.queue
    )


async def receipt(store: Store, outcome: Outcome) -> Receipt:
    """Return the receipt of an append.

    Args:
        store: Where the chat is kept.
        outcome: What the append did, or had done under the same command id.

    Raises:
        StoreUnavailable: The log cannot be read, of a chat that has gone on since the first time.
    """
    control = await _control_after(store, outcome)
    before = outcome.recorded[0].version - 1 if outcome.recorded else control.version
    messages: list[MessageId] = []
    queued: list[MessageId] = []
    for recorded in outcome.recorded:
        event = recorded.event
        if isinstance(event, Effects):
            entered = len(event.answers) + len(event.added)
            messages += [make_message_id(recorded.version, i) for i in range(entered)]
            queued += [make_message_id(recorded.version, entered + i) for i in range(len(event.queued))]
    return Receipt(
        chat=outcome.chat.header.chat,
        version=control.version,
        status=control.status,
        state=classify(control),
        messages=tuple(messages),
        queued=tuple(queued),
        repeated=outcome.repeated,
        cursor=Cursor(version=before).encode(),
    )


async def _control_after(store: Store, outcome: Outcome) -> Control:
    """Return control as the command left it: a repeated one may meet a chat that has gone on."""
    control = outcome.chat.state.control
    if not outcome.recorded or outcome.recorded[-1].version == control.version:
        return control
    last = outcome.recorded[-1].version
    log = await read_recorded(store, outcome.chat.header.chat, upto=last, content=False)
    return fold(log).control
