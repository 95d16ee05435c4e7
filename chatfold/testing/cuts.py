"""Answers that were cut because their turn ended: which attempts those were, and what of them was kept. Pure.

An attempt that is made again, or that an edit removed, is none: it leaves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from events.control import Control
from events.effects import Effects, Interrupting
from events.envelope import Recorded
from events.parts import TextPart
from events.replay import unchecked_replay
from events.vocabulary import Acquired, InterruptionFinished, PolicyRecorded, TurnFailed

OWED: Final = 2.0
"""Seconds after which text that a model said must not be lost where its worker dies and its turn ends."""

_ENDS_TURN: Final = (InterruptionFinished, Interrupting, TurnFailed)
_TAKES_OVER: Final = (Acquired, PolicyRecorded)
"""What may come before that in the same append, and is the end of the attempt."""

Attempt: TypeAlias = tuple[int, int]
"""History version and number."""


class CutAnswer(Struct, frozen=True, kw_only=True):
    """An answer that was cut.

    Attributes:
        attempt: Which it was.
        ending: The event that ended the turn.
        kept: The text that this keeps of it; None where it was erased since.
        lost: Whether another than who made the attempt ended it.
    """

    attempt: Attempt
    ending: Recorded
    kept: str | None
    lost: bool

    def keeps(self, owed: str) -> bool:
        """Whether text with which the answer began was kept, as far as that can be told."""
        return self.kept is None or self.kept.startswith(owed)


def cut_answers(log: Sequence[Recorded]) -> Iterator[CutAnswer]:
    """Yield the answers of a chat that were cut where their turn ended."""
    starter: dict[Attempt, str | None] = {}
    for place, step in enumerate(unchecked_replay(log)):
        before, after = _under_way(step.before.control), _under_way(step.after.control)
        if after is not None and after not in starter:
            starter[after] = step.recorded.envelope.actor.id
        if before is None or before == after:
            continue
        ending = _ending(log, place)
        if ending is not None:
            lost = ending.envelope.actor.id != starter[before]
            yield CutAnswer(attempt=before, ending=ending, kept=_text(ending), lost=lost)


def _under_way(control: Control) -> Attempt | None:
    running = control.running
    return (control.history_version, running.attempt) if running is not None and running.kind == "generate" else None


def _ending(log: Sequence[Recorded], place: int) -> Recorded | None:
    """Return the event that ended the turn with the attempt that ends at ``place``; None where it ended otherwise."""
    command = log[place].envelope.command
    for recorded in log[place:]:
        if isinstance(recorded.event, _ENDS_TURN) and recorded.envelope.command == command:
            return recorded
        if not isinstance(recorded.event, _TAKES_OVER):
            return None
    return None


def _text(recorded: Recorded) -> str | None:
    if not isinstance(recorded.event, Effects):
        return ""
    answers = (message for message in recorded.event.added if message.role == "assistant")
    parts = [part.text for message in answers for part in message.parts if isinstance(part, TextPart)]
    return "".join(part.text for part in parts) if all(part.available for part in parts) else None
