"""Whether the decisions of a log are those that the rules give: decision replay, in lines for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chatfold.replaying.decisions import decision_drifts
from events.envelope import Recorded


def decision_problems(log: Iterable[Recorded]) -> Iterator[str]:
    """Yield what is wrong with the decisions of a chat's log, given from its first event on, each with its version."""
    yield from map(str, decision_drifts(log))
