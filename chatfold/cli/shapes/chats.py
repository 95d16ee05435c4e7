"""Shapes of chats as they are, and as they run.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

from typing import Any

from chatfold.cli.shapes.base import Shape


class ChatLine(Shape, frozen=True, kw_only=True, tag="chat"):
    """A chat, as ``list`` shows it.

    Attributes:
        chat: Its id.
        owner: Whose it is.
        agent: Who answers.
        status: One of the five statuses.
        state: The execution state; ``null`` where the command does not read that much.
        title: Its title, if it has one.
        version: Number of events.
        queued: Messages in its queue.
        archived: Whether it was put away.
        foreign: Whether it was imported and not adopted.
        created_at: When it began.
        updated_at: When it was last changed.
    """

    chat: str
    owner: str
    agent: str
    status: str
    state: str | None = None
    title: str | None = None
    version: int
    queued: int
    archived: bool
    foreign: bool
    created_at: int
    updated_at: int


class EventLine(Shape, frozen=True, kw_only=True, tag="event"):
    """An event, as ``replay`` and ``chat`` show it.

    Attributes:
        version: Its place in the log.
        recorded_at: When it was recorded.
        event: Its type.
        trigger: The transition.
        actor: ``user``, ``worker`` or ``system``, with the id after a colon where there is one.
        source: The status before.
        dest: The status after.
        state_before: The execution state before; ``null`` where states are not folded (``chat``).
        state_after: The execution state after.
        rule: Id of the decision rule, for events that carry a decision out.
        action: What the rule decided.
        facts: What the rule read.
        passed: Rules that were passed by.
        note: The event in a few words, texts cut short.
    """

    version: int
    recorded_at: int
    event: str
    trigger: str
    actor: str
    source: str
    dest: str
    state_before: str | None = None
    state_after: str | None = None
    rule: str | None = None
    action: str | None = None
    facts: dict[str, str | int | bool | None] | None = None
    passed: tuple[str, ...] = ()
    note: str = ""


class StateLine(Shape, frozen=True, kw_only=True, tag="state"):
    """The state of a chat at a version, as ``show`` and ``replay --at`` print it.

    Attributes:
        chat: The chat's id.
        version: The version.
        status: The status.
        state: The execution state.
        control: All facts of the state, as the store's header keeps them; a content is its size in bytes.
        messages: History in order: ``id``, ``version`` (of the event that brought it), and the fields of the message. A
            content is its value, or ``{"absent": why, "bytes": size}``.
        queued: Messages in the queue, in order, in the same form.
    """

    chat: str
    version: int
    status: str
    state: str
    control: Any
    messages: tuple[Any, ...]
    queued: tuple[Any, ...]


class PartLine(Shape, frozen=True, kw_only=True, tag="part"):
    """A live part of an answer, as ``chat`` gets it.

    Attributes:
        cursor: The position in the stream.
        part: ``kind`` text, reasoning, call_delta, call, result or source, with its fields.
    """

    cursor: str
    part: Any


class ResetLine(Shape, frozen=True, kw_only=True, tag="preview_reset"):
    """The parts since the last event are void: the events that follow say what became of them.

    Attributes:
        cursor: The position in the stream.
    """

    cursor: str


class Turned(Shape, frozen=True, kw_only=True, tag="turn"):
    """The end of a turn: the last line of ``chat`` for each message.

    Attributes:
        chat: The chat's id; give it to ``--chat`` to go on.
        version: Its version.
        status: waiting, error or requires_action.
        error: What went wrong, in status error.
        asks: What the client owes, in status requires_action: ``kind``, ``call``, ``name``, ``arguments``; of a budget
            question ``spending``.
    """

    chat: str
    version: int
    status: str
    error: str | None = None
    asks: tuple[Any, ...] = ()


class Said(Shape, frozen=True, kw_only=True, tag="said"):
    """What ``demo`` tells between the lines of the chat.

    Attributes:
        text: The words.
    """

    text: str


class WorkerLine(Shape, frozen=True, kw_only=True, tag="worker"):
    """What a ``worker`` says of itself.

    Attributes:
        worker: The id of its lease.
        state: ``started``, ``draining`` or ``stopped``.
        agents: The agents whose chats it runs.
    """

    worker: str
    state: str
    agents: tuple[str, ...]
