"""A log cut into turns: what belongs to each, from the event that opened it to the one that ended it. Pure.

An event that ends a turn may open the next one, where a queued message is taken up with it: it belongs to the turn that
it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from events.envelope import AT_REST, Recorded
from events.replay import ReplayStep, replay

_T = TypeVar("_T")


class Turn(Struct, frozen=True):
    """The events of one turn, and those behind it until the next one opened.

    Attributes:
        steps: Each with the states around it; never empty.
    """

    steps: Sequence[ReplayStep]

    @property
    def opened_at(self) -> int:
        """The version of its first event."""
        return self.steps[0].recorded.version

    def of(self, kind: type[_T]) -> Iterator[tuple[ReplayStep, _T]]:
        """Yield its events of one type, each with its step."""
        for step in self.steps:
            if isinstance(step.recorded.event, kind):
                yield step, step.recorded.event


def turns(log: Iterable[Recorded]) -> Iterator[Turn]:
    """Yield the turns of a log, given from its first event on. What comes before the first turn belongs to it.

    Raises:
        EventsError: An event cannot be read or applied; ``InvalidValue`` where what is given is no log.
    """
    gathered: list[ReplayStep] = []
    opened = False
    for step in replay(log):
        before, after = step.before.control, step.after.control
        opens = after.turns > before.turns
        if opens and opened and before.status in AT_REST:
            yield Turn(gathered)
            gathered, opens = [], False
        gathered.append(step)
        if opens and opened:
            yield Turn(gathered)
            gathered = []
        opened = opened or after.turns > 0
    if gathered:
        yield Turn(gathered)
