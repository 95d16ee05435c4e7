"""Incidents: what went wrong in a chat, or why a turn of it ended without its answer, told from its log alone. Pure.

Owns which kinds there are, which of them are faults, and in which order several of one turn are told: what caused
others comes first. What each is recognised by is ``signs``'s matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from chatfold.replaying import signs
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
    "failed_calls",
    "repeated_call",
    "stopped_by_tool",
    "budget_spent",
    "empty_answer",
    "interrupted",
    "open_question",
]
"""What can have happened. In the order in which incidents of one turn are told."""


class Incident(Struct, frozen=True, kw_only=True):
    """Something that happened in a turn.

    Attributes:
        kind: What kind of thing it is.
        fault: Whether something went wrong, and not just as somebody wanted it.
        turn: The version that opened its turn.
        turns_ago: How many turns came behind that one; 0 of the newest.
        version: The event that tells most of it.
        what: What happened, with its numbers, in sentences.
        advice: What to do about it, in sentences.
    """

    kind: IncidentKind
    fault: bool
    turn: int
    turns_ago: int
    version: int
    what: str
    advice: str


def incidents(log: Iterable[Recorded]) -> list[Incident]:
    """Return what happened in a chat, the newest turn's first.

    Contents are not needed; with them, calls that were repeated with the same arguments are found too.

    Args:
        log: Its events, from the first one on.

    Raises:
        EventsError: An event cannot be read or applied.
        InvalidValue: What is given are no events, or not those of one log.
    """
    return [found for ago, turn in enumerate(reversed(list(turns(log)))) for found in _of(turn, ago)]


def _of(turn: Turn, ago: int) -> Iterator[Incident]:
    for kind, (fault, detect) in _KINDS.items():
        for sign in detect(turn):
            yield Incident(
                kind=kind,
                fault=fault,
                turn=turn.opened_at,
                turns_ago=ago,
                version=sign.version,
                what=sign.what,
                advice=sign.advice,
            )


_KINDS: Final[dict[IncidentKind, tuple[bool, Callable[[Turn], Iterator[signs.Sign]]]]] = {
    "lost_result": (True, signs.lost_results),
    "compaction_loop": (True, signs.compaction_loop),
    "retry_storm": (True, signs.retry_storm),
    "silent_client": (True, signs.silent_client),
    "step_limit": (True, signs.step_limit),
    "failed_turn": (True, signs.failed_turn),
    "run_again": (False, signs.run_again),
    "failed_calls": (False, signs.failed_calls),
    "repeated_call": (False, signs.repeated_call),
    "stopped_by_tool": (False, signs.stopped_by_tool),
    "budget_spent": (False, signs.budget_spent),
    "empty_answer": (False, signs.empty_answer),
    "interrupted": (False, signs.interrupted),
    "open_question": (False, signs.open_question),
}
"""What each kind is found by, and whether it is a fault; in the order in which they are told."""
