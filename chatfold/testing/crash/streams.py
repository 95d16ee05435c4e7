"""What models had said of answers that were cut, and so what must have been kept of it. Pure.

Owed is what was said some seconds before the last sign of life of the process, or before the attempt's end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from chatfold.testing.crash.ledger import Said
from chatfold.testing.cuts import OWED, Attempt, CutAnswer, cut_answers
from events.envelope import Recorded


class Cut(Struct, frozen=True, kw_only=True):
    """An answer that was cut, the text of it that is owed, and the processes that gave it."""

    answer: CutAnswer
    owed: str
    processes: frozenset[int]

    @property
    def how(self) -> str:
        """The type of the event that ended the turn."""
        return self.answer.ending.event.type

    @property
    def kept(self) -> bool:
        """Whether what is owed was kept."""
        return self.answer.kept is None or self.answer.kept.startswith(self.owed)


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
    by_attempt: defaultdict[Attempt, list[Said]] = defaultdict(list)
    for each in said:
        by_attempt[each.history_version, each.attempt].append(each)
    for answer in cut_answers(log):
        ended, lines = answer.ending.envelope.recorded_at / 1e6, by_attempt[answer.attempt]
        owed = [each.text for each in lines if each.at < min(ended, alive[each.process]) - OWED]
        yield Cut(answer=answer, owed="".join(owed), processes=frozenset(each.process for each in lines))
