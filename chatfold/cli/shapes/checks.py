"""Shapes of what looking into a chat finds.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

from typing import Any

from chatfold.cli.shapes.base import Shape


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
        workers: The workers that live: ``worker``, ``expires_at``, ``agents``, ``capacity``, ``release``, ``process``,
            and of each agent the names of its ``tools``.
        refusal: The last command that was refused: ``at``, ``trigger``, ``code``, ``state``, ``reason``, ``actor``.
        incidents: What happened in its turns, the newest turn's first: ``kind``, ``fault`` (whether something went
            wrong), ``turn`` (the version that opened it), ``turns_ago``, ``since`` (where it began), ``version``,
            ``what``, ``advice``.
        problem: Why its log is not whole: it was altered, say; ``null`` where it is.
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
    incidents: tuple[Any, ...]
    problem: str | None


class Examined(Shape, frozen=True, kw_only=True, tag="examined"):
    """What ``doctor`` says of each of several logs.

    Attributes:
        log: The file, or the chat's id.
        events: How many events it has.
        fault: Whether something went wrong in its newest turn.
        worst: The kind of the worst that happened in its newest turn; ``null`` where nothing did.
        version: The event that tells most of it.
        what: What happened.
        advice: What to do about it.
        kinds: All kinds of what happened in that turn.
        problem: Why it could not be read, or is not whole; ``null`` where neither is so.
    """

    log: str
    events: int
    fault: bool
    worst: str | None
    version: int | None
    what: str | None
    advice: str | None
    kinds: tuple[str, ...]
    problem: str | None


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


class GraphText(Shape, frozen=True, kw_only=True, tag="graph"):
    """What ``graph`` drew.

    Attributes:
        format: ``mermaid``, ``dot`` or ``svg``.
        text: The drawing's source.
    """

    format: str
    text: str
