"""Model checking: the whole bounded space, every command in every state.

The walk takes some seconds, so all tests here look at one walk.
"""

from __future__ import annotations

from collections import Counter, deque

import pytest

from chatfold.testing.prompts import prompt_problems
from chatstate.audit import audit
from chatstate.classify import EXISTING, X, classify
from chatstate.invariants import violations
from chatstate.table import TABLE
from events.reducer import fold
from tests.chatstate.space import Key
from tests.chatstate.walk import Walk

pytestmark = pytest.mark.timeout(300)
"""The walk takes some 20 s of one core: the first test that needs it pays on a machine that does much else."""

RESTING = (X.W, X.E0, X.E1, X.XW, X.XE0, X.XE1)
"""States that only a human leads out of, and before a chat exists."""


@pytest.fixture(scope="module")
def walk() -> Walk:
    return Walk().run()


def test_it_sees_the_whole_space(walk: Walk) -> None:
    by_state = Counter(str(classify(state.control)) for state in walk.states.values())
    edges, refused = walk.edges.total(), walk.refusals.total()
    print(f"{len(walk.states)} states, {edges} edges, {refused} refusals; by execution state: {dict(by_state)}")
    assert set(by_state) == {str(x) for x in (X.N, *EXISTING)}
    assert len(walk.states) > 5000
    assert edges > 150_000
    assert refused > 150_000


def test_no_step_is_wrong_and_no_state_breaks_an_invariant(walk: Walk) -> None:
    assert walk.problems[:20] == []


def test_every_row_of_the_table_is_taken_to_each_of_its_outcomes(walk: Walk) -> None:
    listed = {
        (x, trigger, case, outcome)
        for x, cells in TABLE.items()
        for trigger, cell in cells.items()
        for case, outcomes in cell._asdict().items()
        for outcome in outcomes
        if x is not X.INVALID
    }
    assert set(walk.edges) == listed


def test_from_every_state_but_the_resting_ones_a_chat_comes_to_rest_without_a_human(walk: Walk) -> None:
    resting = [place for place, state in walk.states.items() if classify(state.control) in RESTING]
    reaches: set[Key] = set(resting)
    ahead = deque(resting)
    while ahead:
        for before in walk.automatic.get(ahead.popleft(), ()):
            if before not in reaches:
                reaches.add(before)
                ahead.append(before)
    stuck = [place for place, state in walk.states.items() if place not in reaches and state.control.exists]
    assert stuck == []


def test_each_kind_of_refusal_that_needs_no_store_is_met(walk: Walk) -> None:
    met = {code for _, _, code in walk.refusals}
    assert met == {
        "transition_not_allowed",
        "chat_not_found",
        "queue_full",
        "stale_fence",
        "message_not_found",
        "queued_not_found",
        "nothing_to_compact",
        "nothing_to_clear",
        "nothing_owed",
        "tool_results_invalid",
    }


def test_audit_accepts_the_logs_and_they_fold_to_the_states_met(walk: Walk) -> None:
    places = list(walk.states)[:: max(1, len(walk.states) // 200)]
    for place in places:
        log, state = walk.log(place), walk.states[place]
        assert list(audit(log)) == []
        assert prompt_problems(log) == []
        assert fold(log) == state
        assert violations(state) == []
