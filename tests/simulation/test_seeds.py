"""Seeds: a share of them in every run of the tests, many of them in the soak."""

from __future__ import annotations

import pytest

from chatfold.testing.simulation import simulate
from chatfold.testing.simulation.report import failure_of

SEEDS = 1000
_PART = 50


@pytest.mark.parametrize("first", range(0, SEEDS, _PART))
def test_nothing_is_violated(first: int) -> None:
    for seed in range(first, first + _PART):
        outcome = simulate(seed)
        assert outcome.violation is None, f"\n{failure_of(outcome)}"


def test_worlds_are_as_wild_as_they_claim() -> None:
    """What is drawn comes about: otherwise seeds that go well say nothing."""
    told = "\n".join(line for seed in range(60) for line in simulate(seed, trace=True).trace)
    for sign in (
        "is killed",
        "stands still",
        "goes on",
        "is asked to end",
        "the database is away",
        "s ahead",
        "loses its hints",
        "reply lost",
        "-> Conflict",
        "-> DuplicateCommand",
        "no answer",
        "refused",
        "interruption_finished",
        "retry_scheduled",
        "action_expired",
        "compaction_committed",
        "chat_forked",
        "released",
    ):
        assert sign in told, sign
