"""Incidents: what went wrong in a chat, or why a turn of it ended without its answer, told from its log alone. Pure.

Owns which kinds there are, which of them are faults, and in which order several of one turn are told. What each
is recognised by is ``signs``'s matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.replaying.signs import calls, clients, ends, lost, models
from chatfold.replaying.signs.sign import Sign
from chatfold.replaying.turns import Turn, turns
from events.envelope import Recorded

IncidentKind: TypeAlias = Literal[
    "lost_result",
    "compaction_loop",
    "retry_storm",
    "silent_client",
    "step_limit",
    "failed_turn",
    "run_again",
    "taken_over",
    "failed_calls",
    "repeated_call",
    "stopped_by_tool",
    "budget_spent",
    "empty_answer",
    "interrupted",
    "open_question",
]
"""What can have happened."""


class Incident(Struct, frozen=True, kw_only=True):
    """Something that happened in a turn.

    Attributes:
        kind: What kind of thing it is.
        fault: Whether something went wrong, and not just as somebody wanted it.
        turn: The version that opened its turn.
        turns_ago: How many turns came behind that one; 0 of the newest.
        since: Where it began.
        version: The event that tells most of it.
        what: What happened, with its numbers, in sentences.
        advice: What to do about it, in sentences.
    """

    kind: IncidentKind
    fault: bool
    turn: int
    turns_ago: int
    since: int
    version: int
    what: str
    advice: str


def incidents(log: Iterable[Recorded]) -> list[Incident]:
    """Return what happened in a chat, the newest turn's first.

    Of one turn faults come first, then the rest, both in the order in which they began; calls that failed stand
    together, the worst first. Contents are not needed; with them, calls that were repeated with the same arguments are
    found too, and those that failed are told apart by how.

    Args:
        log: Its events, from the first one on.

    Raises:
        EventsError: An event cannot be read or applied.
        InvalidValue: What is given are no events, or not those of one log.
    """
    return [found for ago, turn in enumerate(reversed(list(turns(log)))) for found in _of(turn, ago)]


def _of(turn: Turn, ago: int) -> list[Incident]:
    """Return the incidents of a turn as they are told."""
    found = [
        (not fault, sign.told_at, _incident(kind, sign, turn, ago))
        for kind, (fault, detect) in _KINDS.items()
        for sign in detect(turn)
    ]
    return [incident for *_, incident in sorted(found, key=lambda each: each[:2])]


def _incident(kind: IncidentKind, sign: Sign, turn: Turn, ago: int) -> Incident:
    return Incident(
        kind=kind,
        fault=_KINDS[kind][0],
        turn=turn.opened_at,
        turns_ago=ago,
        since=sign.began,
        version=sign.version,
        what=sign.what,
        advice=sign.advice,
    )


_KINDS: Final[dict[IncidentKind, tuple[bool, Callable[[Turn], Iterator[Sign]]]]] = {
    "lost_result": (True, lost.lost_results),
    "compaction_loop": (True, models.compaction_loop),
    "retry_storm": (True, models.retry_storm),
    "silent_client": (True, clients.silent_client),
    "step_limit": (True, ends.step_limit),
    "failed_turn": (True, ends.failed_turn),
    "run_again": (False, lost.run_again),
    "taken_over": (False, lost.taken_over),
    "failed_calls": (False, calls.failed_calls),
    "repeated_call": (False, calls.repeated_call),
    "stopped_by_tool": (False, ends.stopped_by_tool),
    "budget_spent": (False, ends.budget_spent),
    "empty_answer": (False, ends.empty_answer),
    "interrupted": (False, ends.interrupted),
    "open_question": (False, clients.open_question),
}
"""What each kind is found by, and whether it is a fault."""
