"""The matrix: every allowed pair gives a listed outcome, every forbidden one a typed refusal that changes nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from chatstate import commands as c
from chatstate.classify import STATUS_OF, X, classify
from chatstate.decide import HANDLERS, decide
from chatstate.errors import Refusal, StaleFence
from chatstate.invariants import violations
from chatstate.machine import MACHINE
from chatstate.table import TABLE, TRIGGERS
from events.codec import decode
from events.reducer import evolve
from events.state import ChatState
from events.vocabulary import EVENT_TYPES
from tests.chatstate.cases import COMMANDS, Case, allowed, broken, forbidden, unfenced
from tests.chatstate.chat import Chat, record, store, trace

ALLOWED = list(allowed())
FORBIDDEN = list(forbidden())


def meet(case: Case) -> ChatState:
    """Run a case's plan and return the state that its command meets."""
    chat = Chat()
    for command, now in case.plan:
        chat.do(command, now=now)
    state = broken(chat.state) if case.state is X.INVALID else chat.state
    assert classify(state.control) is case.state
    return state


def test_each_pair_has_its_cases_and_no_pair_has_others() -> None:
    cells = {(x, trigger): cell for x, cells in TABLE.items() for trigger, cell in cells.items()}
    outcomes = Counter((x, t, o) for (x, t), cell in cells.items() for o in cell.outcomes)
    assert Counter((case.state, case.trigger, case.expected) for case in ALLOWED) == outcomes
    missing = {(x, trigger) for x in X for trigger in TRIGGERS} - set(cells)
    dead_alone = {pair for pair, cell in cells.items() if cell.dead and not cell.usual}
    tried = Counter((case.state, case.trigger) for case in FORBIDDEN)
    assert tried == Counter({*missing, *dead_alone})
    ids = [case.id for case in (*ALLOWED, *FORBIDDEN)]
    assert len(ids) == len(set(ids))
    print(f"{len(ALLOWED)} allowed outcomes, {len(FORBIDDEN)} forbidden pairs")


def test_triggers_commands_handlers_and_event_types_correspond() -> None:
    commands = {command.trigger for command in c.AnyCommand.__args__}
    events = Counter(event.trigger for event in EVENT_TYPES.values())
    assert set(TRIGGERS) == commands == set(HANDLERS) == set(COMMANDS) == set(events) == set(MACHINE.events)
    assert set(events.values()) == {1}


def test_the_status_after_a_case_is_certain() -> None:
    for x, cells in TABLE.items():
        for trigger, cell in cells.items():
            for case, outcomes in cell._asdict().items():
                assert len({STATUS_OF[outcome] for outcome in outcomes}) <= 1, (x, trigger, case)


@pytest.mark.parametrize("case", ALLOWED, ids=lambda case: case.id)
def test_an_allowed_pair_gives_its_outcome(case: Case) -> None:
    state = meet(case)
    before = trace(state)
    decided = decide(state, case.command.command, case.command.now)
    recorded = record(state, decided)
    after = evolve(state, recorded)
    assert classify(after.control) is case.expected
    assert decided.event.trigger == case.trigger
    assert (decided.source, decided.dest) == (
        STATUS_OF.get(case.state, state.control.status),
        after.control.status,
    )
    assert violations(after) == []
    assert after.control.version == state.control.version + 1
    assert trace(state) == before
    assert decode(store(recorded)) == recorded


@pytest.mark.parametrize("case", FORBIDDEN, ids=lambda case: case.id)
def test_a_forbidden_pair_is_refused_and_changes_nothing(case: Case) -> None:
    state = meet(case)
    before = trace(state)
    with pytest.raises(Refusal) as caught:
        decide(state, case.command.command, case.command.now)
    refusal = caught.value
    assert (type(refusal), refusal.trigger, refusal.state) == (case.expected, case.trigger, case.state)
    assert refusal.code
    assert refusal.reason
    assert trace(state) == before


FENCED = [case for case in ALLOWED if unfenced(case.command.command)]


@pytest.mark.parametrize("case", FENCED, ids=lambda case: case.id)
def test_a_worker_under_a_fence_that_does_not_hold_is_refused_and_changes_nothing(case: Case) -> None:
    state = meet(case)
    before = trace(state)
    for command in unfenced(case.command.command):
        with pytest.raises(StaleFence) as caught:
            decide(state, command, case.command.now)
        assert (caught.value.trigger, caught.value.state) == (case.trigger, case.state)
    assert trace(state) == before
