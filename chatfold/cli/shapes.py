"""What ``--json`` prints: one object a line. The shapes are promised, and the documentation is made from them.

Times are microseconds UTC. ``kind`` tells the objects of one command apart. Fields may be added; none is taken away.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Shape(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all shapes."""


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


class Diagnosed(Shape, frozen=True, kw_only=True, tag="diagnosis"):
    """What ``doctor`` says.

    Attributes:
        chat: The chat's id.
        status: Its status.
        state: Its execution state.
        moving: Whether it goes on without a human, as far as can be seen.
        acts: Who has to act next: ``worker``, ``client``, ``user`` or ``operator``.
        next: What happens next.
        at: When; ``null`` where that depends on somebody.
        advice: What to do about it.
        now: Database time.
        holder: The worker that holds it.
        lease_until: Until when the holder's lease lives or lived.
        control: All facts of the state, as the store's header keeps them.
        workers: The workers that live: ``worker``, ``expires_at``, ``agents``, ``capacity``, ``release``, ``process``.
        refusal: The last command that was refused: ``at``, ``trigger``, ``code``, ``state``, ``reason``, ``actor``.
    """

    chat: str
    status: str
    state: str
    moving: bool
    acts: str
    next: str
    at: int | None
    advice: str
    now: int
    holder: str | None
    lease_until: int | None
    control: Any
    workers: tuple[Any, ...]
    refusal: Any


class Problem(Shape, frozen=True, kw_only=True, tag="problem"):
    """Something that ``verify`` found.

    Attributes:
        chat: The chat's id, or the file.
        version: The event that is wrong or made it so; ``null`` for the header.
        check: ``form``, ``digest``, ``audit``, ``header``, ``segment``, ``blob``, ``feed`` or ``use``.
        problem: What is wrong.
    """

    chat: str
    version: int | None
    check: str
    problem: str


class Verified(Shape, frozen=True, kw_only=True, tag="verified"):
    """What ``verify`` says of each log after its problems.

    Attributes:
        chat: The chat's id, or the file.
        version: Number of events.
        problems: Number of problems.
        digest: Digest of the last event, hexadecimal.
    """

    chat: str
    version: int
    problems: int
    digest: str


class RepairedLine(Shape, frozen=True, kw_only=True, tag="repaired"):
    """What ``repair`` says of each chat.

    Attributes:
        chat: The chat's id.
        version: Number of events; ``null`` where it was not repaired.
        header: Columns of the header that were rewritten.
        dropped: Segments that were dropped.
        built: Segments that were built.
        uses: Notes of which large contents it uses that were added or taken away.
        foreign: Whether the chat is foreign now.
        refused: Why nothing was changed; ``null`` where it could be repaired.
        left: Problems that repairing does not mend: ``version``, ``check``, ``problem``.
    """

    chat: str
    version: int | None
    header: tuple[str, ...] = ()
    dropped: int = 0
    built: int = 0
    uses: int = 0
    foreign: bool = False
    refused: str | None = None
    left: tuple[Any, ...] = ()


class Imported(Shape, frozen=True, kw_only=True, tag="imported"):
    """What ``import`` did.

    Attributes:
        chat: The id that the chat has here.
        version: Its version.
        foreign: Whether it is marked as not to be run here.
        missing_blobs: Large contents that the file refers to and that are neither packed nor in the store.
    """

    chat: str
    version: int
    foreign: bool
    missing_blobs: int


class Adopted(Shape, frozen=True, kw_only=True, tag="adopted"):
    """What ``adopt`` did.

    Attributes:
        chat: The chat's id.
        version: Its version.
    """

    chat: str
    version: int


class Exported(Shape, frozen=True, kw_only=True, tag="exported"):
    """What ``export --output FILE`` did.

    Attributes:
        chat: The chat's id.
        version: Number of events.
        blobs: Number of packed contents.
        file: Where it was written.
    """

    chat: str
    version: int
    blobs: int
    file: str


class GraphText(Shape, frozen=True, kw_only=True, tag="graph"):
    """What ``graph`` drew.

    Attributes:
        format: ``mermaid`` or ``dot``.
        text: The drawing's source.
    """

    format: str
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


class Migrated(Shape, frozen=True, kw_only=True, tag="migrated"):
    """What ``migrate`` did.

    Attributes:
        database: Its URL, without a password.
        schema: The schema that it has now.
    """

    database: str
    schema: str


class Said(Shape, frozen=True, kw_only=True, tag="said"):
    """What ``demo`` tells between the lines of the chat.

    Attributes:
        text: The words.
    """

    text: str


SHAPES: tuple[type[Shape], ...] = (
    ChatLine, EventLine, StateLine, PartLine, ResetLine, Turned, Diagnosed, Problem, Verified, RepairedLine, Imported,
    Adopted, Exported, GraphText, WorkerLine, Migrated, Said,
)  # fmt: skip
"""All shapes, in the order of the documentation."""
