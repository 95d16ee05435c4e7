"""Shapes of what is told of decisions: where they drifted, and why they were taken.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

from typing import Any

from chatfold.cli.shapes.base import Shape


class DriftLine(Shape, frozen=True, kw_only=True, tag="drift"):
    """A decision of which ``replay --decide`` found that it is not what the log says.

    Attributes:
        log: The file, or the chat's id.
        version: The event that carries the decision out; for one that is missing, the event that came instead.
        drift: ``rule``, ``action``, ``facts``, ``missing``, ``undue`` or ``policy``.
        meaning: What that means.
        then: The recorded decision: ``rule``, ``action``, ``because``, ``facts``, ``read``, ``passed``, ``policy``;
            ``null`` where the log has none.
        now: The decision that is taken today, in the same form; ``null`` where none is.
        changes: What differs: ``path``, ``before``, ``after`` each.
    """

    log: str
    version: int
    drift: str
    meaning: str
    then: Any
    now: Any
    changes: tuple[Any, ...]


class ReplayedLog(Shape, frozen=True, kw_only=True, tag="replayed"):
    """What ``replay --decide`` says of each log after its drifts.

    Attributes:
        log: The file, or the chat's id.
        events: How many events it has.
        decisions: How many decisions were taken again: all of them, or, without ``--all``, those up to the first drift.
        drifts: How many drifted; without ``--all`` at most one.
        altered: Why it is not as it was written, and from which version on; ``null`` where it is.
        problem: Why it could not be read, or decided to its end; ``null`` where it could.
        unread: Fields that the policy of ``--policy`` changes, and that no decision of this log reads.
    """

    log: str
    events: int
    decisions: int
    drifts: int
    altered: str | None
    problem: str | None
    unread: tuple[str, ...] = ()


class WhyLine(Shape, frozen=True, kw_only=True, tag="why"):
    """What ``why`` says of an event.

    Attributes:
        log: The file, or the chat's id.
        version: The event's.
        event: Its type.
        because: Why it is there.
        happened: What went wrong there, or ended its turn, as ``doctor`` says it; of most events nothing.
        decided_at: The version of the event with the decision behind it; ``null`` where none is.
        decision: Of an event that carries a decision out: ``rule``, ``action``, ``when`` its rule holds, ``because``,
            what was ``read``, the rules that were ``passed`` by (``rule``, ``action``, ``because`` each), and the
            ``page`` that explains the rule; else ``null``.
    """

    log: str
    version: int
    event: str
    because: str
    happened: tuple[str, ...]
    decided_at: int | None
    decision: Any
