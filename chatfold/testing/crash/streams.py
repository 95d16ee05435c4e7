"""What models had said of answers that were cut, and what was kept of it. Pure.

Owns which text the engine owes: what was said ``OWED`` seconds before the last sign of life of the process, or before
the attempt's end. It owes it where that end ended the turn; an attempt that is made again, or that an edit removed,
leaves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from chatfold.testing.crash.ledger import Said
from events.control import Control
from events.effects import Effects, Interrupting
from events.envelope import Recorded
from events.parts import TextPart
from events.replay import replay
from events.vocabulary import InterruptionFinished, TurnFailed

OWED: Final = 2.0
"""Seconds after which text that was said must not be lost."""

_ENDS_TURN: Final = (InterruptionFinished, Interrupting, TurnFailed)

_Attempt: TypeAlias = tuple[int, int]


class Cut(Struct, frozen=True, kw_only=True):
    """An answer that its turn ended without.

    Attributes:
        version: The event that ended the turn.
        how: Its type.
        owed: What must be kept of the answer.
        kept: What was.
        lost: Whether another than who made the attempt ended it.
        processes: Who gave the answer.
    """

    version: int
    how: str
    owed: str
    kept: str
    lost: bool
    processes: frozenset[int]


def last_signs(said: Sequence[Said]) -> dict[int, float]:
    """Return when each process was last heard of: when it was killed it was not dead before that."""
    last: dict[int, float] = {}
    for each in said:
        last[each.process] = max(each.at, last.get(each.process, 0.0))
    return last


def cuts(log: Sequence[Recorded], said: Sequence[Said], alive: Mapping[int, float]) -> Iterator[Cut]:
    """Yield the answers of a chat that were cut where their turn ended.

    Args:
        log: The chat's events.
        said: What models said in it.
        alive: When each process was last heard of.
    """
    by_attempt: defaultdict[_Attempt, list[Said]] = defaultdict(list)
    for each in said:
        by_attempt[each.history_version, each.attempt].append(each)
    starter: dict[_Attempt, str | None] = {}
    for place, step in enumerate(replay(log)):
        before, after = _under_way(step.before.control), _under_way(step.after.control)
        if after is not None and after not in starter:
            starter[after] = step.recorded.envelope.actor.id
        if before is None or before == after or before not in by_attempt:
            continue
        ending = _ending(log, place)
        if ending is not None:
            yield _cut(ending, by_attempt[before], alive, starter[before])


def _under_way(control: Control) -> _Attempt | None:
    running = control.running
    return (control.history_version, running.attempt) if running is not None and running.kind == "generate" else None


def _ending(log: Sequence[Recorded], place: int) -> Recorded | None:
    """Return the event of the append at ``place`` that ended the turn; None where it went on."""
    command = log[place].envelope.command
    for recorded in log[place:]:
        if recorded.envelope.command != command:
            return None
        if isinstance(recorded.event, _ENDS_TURN):
            return recorded
    return None


def _cut(ending: Recorded, said: Sequence[Said], alive: Mapping[int, float], starter: str | None) -> Cut:
    ended = ending.envelope.recorded_at / 1e6
    owed = [each.text for each in said if each.at < min(ended, alive[each.process]) - OWED]
    return Cut(
        version=ending.version,
        how=ending.event.type,
        owed="".join(owed),
        kept=_text(ending),
        lost=ending.envelope.actor.id != starter,
        processes=frozenset(each.process for each in said),
    )


def _text(recorded: Recorded) -> str:
    if not isinstance(recorded.event, Effects):
        return ""
    answers = (message for message in recorded.event.added if message.role == "assistant")
    parts = (part for message in answers for part in message.parts)
    return "".join(part.text.text for part in parts if isinstance(part, TextPart) and part.text.available)
