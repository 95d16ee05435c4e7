"""Shapes of what running a log again finds.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

from typing import Any

from chatfold.cli.shapes.base import Shape
from chatfold.cli.shapes.chats import EventLine


class SectionLine(Shape, frozen=True, kw_only=True, tag="section"):
    """A section of requests that is another one today; part of what ``rerun`` prints.

    Attributes:
        version: The first event that tells of it.
        section: ``system``, ``tools``, ``messages``, ``instruction`` (of a request for a summary), ``options``,
            ``policy`` or ``calls``.
        then: Its digest in the log; of ``calls`` the tool's name.
        now: Its digest today; of ``calls`` what becomes of such a call today, in words.
        requests: How many requests, or calls, have it.
        changes: What changed in a policy: ``path``, ``before``, ``after``.
        shown: The lines of a diff, with ``--show``.
    """

    version: int
    section: str
    then: str
    now: str
    requests: int
    changes: tuple[Any, ...] = ()
    shown: tuple[str, ...] = ()


class RerunLine(Shape, frozen=True, kw_only=True, tag="rerun"):
    """What ``rerun`` says of each log.

    Attributes:
        log: The chat's id, or the file.
        same: Whether all events came out again, and no section that counts is another one.
        events: Events of the log.
        again: How many of them came out again, from the first on.
        said: What became of it, in words.
        version: Where it parts from the log; ``null`` where it does not.
        difference: How: ``event``, ``extra``, ``missing``, ``refused``, ``fault`` or ``stuck``.
        rule: The rule by which the log's event was decided, or the one that came in its place.
        before: The events before that version, a few.
        then: The log's event there.
        now: The event that came there.
        changes: What differs between the two: ``path``, ``before``, ``after``; contents as their sizes.
        sections: Sections of requests that are others today.
        not_compared: What was not compared, and why.
        problem: Why it was not run: it cannot be read, was altered, or cannot be run again.
    """

    log: str
    same: bool
    events: int = 0
    again: int = 0
    said: str = ""
    version: int | None = None
    difference: str | None = None
    rule: str | None = None
    before: tuple[EventLine, ...] = ()
    then: EventLine | None = None
    now: EventLine | None = None
    changes: tuple[Any, ...] = ()
    sections: tuple[SectionLine, ...] = ()
    not_compared: tuple[str, ...] = ()
    problem: str | None = None
