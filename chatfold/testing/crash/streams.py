"""What models had said of answers that were cut, and so what must have been kept of it. Pure.

Owed is what was said some seconds before the answer's last words, or before the attempt's end: a process whose model
goes on saying something was not killed yet, and still had its lease.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

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
        return self.answer.keeps(self.owed)


def cuts(log: Sequence[Recorded], said: Sequence[Said]) -> Iterator[Cut]:
    """Yield the answers of a chat that were cut where their turn ended; ``said`` is what models said in it."""
    by_attempt: defaultdict[Attempt, list[Said]] = defaultdict(list)
    for each in said:
        by_attempt[each.history_version, each.attempt].append(each)
    for answer in cut_answers(log):
        lines = by_attempt[answer.attempt]
        until = min([answer.ending.envelope.recorded_at / 1e6, *(each.at for each in lines[-1:])]) - OWED
        owed = "".join(each.text for each in lines if each.at < until)
        yield Cut(answer=answer, owed=owed, processes=frozenset(each.process for each in lines))
