"""Shapes of what the corpus gate says.

What holds of all shapes is said by ``base``.
"""

from __future__ import annotations

from typing import Any

from chatfold.cli.shapes.base import Shape


class CorpusLine(Shape, frozen=True, kw_only=True, tag="corpus_log"):
    """What ``corpus check`` says of each log.

    Attributes:
        log: The log's file.
        fine: Whether every check passed.
        events: How many events it has.
        check: The check that found something: ``read``, ``fold``, ``audit``, ``decide``, ``prompts`` or ``rerun``.
        version: The version at which it is; ``null`` where it is of none.
        rule: The decision rule under which that version was written.
        problem: What is wrong.
        changes: What differs from then to today: ``path``, ``before``, ``after``; contents as their sizes.
        unsupported: Why it cannot be run again, where that is no fault.
    """

    log: str
    fine: bool
    events: int
    check: str | None = None
    version: int | None = None
    rule: str | None = None
    problem: str | None = None
    changes: tuple[Any, ...] = ()
    unsupported: str | None = None


class CoverageLine(Shape, frozen=True, kw_only=True, tag="coverage"):
    """What ``corpus coverage`` says of each kind of thing.

    Attributes:
        of: ``transition``, ``rule``, ``event``, ``end``, ``error``, ``part``, ``reason``, ``value`` or ``field``.
        possible: How many there are.
        covered: How many of them some log has.
        seen: How often each was seen, by its name.
        missing: What no log has.
    """

    of: str
    possible: int
    covered: int
    seen: dict[str, int]
    missing: tuple[str, ...]


class AddedLog(Shape, frozen=True, kw_only=True, tag="added"):
    """A log that ``corpus add`` has added.

    Attributes:
        log: Its file in the corpus.
        strangers: Its agents of which it is not kept what they said: the gate does not see their texts and tools.
    """

    log: str
    strangers: tuple[str, ...] = ()


class RefoldedLog(Shape, frozen=True, kw_only=True, tag="refolded"):
    """What ``corpus refold`` says of each log.

    Attributes:
        log: The log's file.
        changed: Whether its fold expectations are others than they were.
    """

    log: str
    changed: bool
