"""Planted bugs are found: what the seeds would say if the engine did not do what it relies on."""

from __future__ import annotations

from itertools import count

import pytest

from chatfold.testing.simulation import Outcome, simulate
from chatfold.testing.simulation.report import command_of, failure_of
from tests.simulation.bugs import BUGS

WITHIN = 2000


def first_found(bug: str) -> Outcome:
    """Run seeds until one is violated."""
    with BUGS[bug]():
        for seed in count():
            outcome = simulate(seed)
            if outcome.violation is not None or seed == WITHIN - 1:
                return outcome
    raise AssertionError("unreachable")


@pytest.mark.parametrize("bug", BUGS)
@pytest.mark.odd_reruns("wrong code writes the logs")
def test_a_planted_bug_is_found(bug: str) -> None:
    outcome = first_found(bug)
    print(f"{bug}: seed {outcome.seed}: {outcome.violation}")
    assert outcome.violation is not None
    # The same seed finds it again, step by step, and is told as a command; without the bug it goes well.
    with BUGS[bug]():
        again = simulate(outcome.seed)
    assert (again.violation, again.digest) == (outcome.violation, outcome.digest)
    assert command_of(outcome.seed) in failure_of(outcome)
    assert simulate(outcome.seed).violation is None
