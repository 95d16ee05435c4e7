"""Why in words: each rule has words and a place in the page, and what is told was recorded."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from msgspec.structs import replace

from chatfold.replaying.causes import Cause, causes
from chatfold.replaying.words import PAGE, PassedBy, explain, page_of, why
from events import vocabulary as v
from events.content import Content
from events.effects import EventBase
from events.envelope import Recorded
from events.ids import CallKey, WorkerId
from events.messages import Message
from events.parts import ToolResultPart
from events.records import (
    NO_LIMIT,
    Actor,
    ActorKind,
    ApprovalAnswer,
    Budget,
    BudgetAnswer,
    Decision,
    ErrorInfo,
)
from events.upcasting import REGISTRY
from generation.decide import RULES
from generation.rule_words import NOT_RECORDED
from tests.chatfold.replaying.kit import decided, decision_of, events_of, helped
from tests.golden.events_v0_1 import EVENTS as EVENTS_V0_1
from tests.golden.events_v0_2 import EVENTS as EVENTS_V0_2
from tests.meta.source import ROOT

EVENTS = events_of(helped())


def result(call: CallKey, *, is_error: bool = False) -> Message:
    """Return the message of a result."""
    return Message(role="tool", parts=(ToolResultPart(call=call, is_error=is_error, output=Content("Secret")),))


TOLD = list(causes(EVENTS))


def test_each_rule_has_its_place_in_the_page() -> None:
    anchors = re.findall(r"^### (.*)$", (ROOT / PAGE).read_text(), re.MULTILINE)
    assert anchors == [rule.id for rule in RULES]
    assert [page_of(rule.id) for rule in RULES] == [f"{PAGE}#{anchor.lower()}" for anchor in anchors]
    assert page_of("D99") == PAGE


def test_a_decision_is_told_from_what_it_recorded() -> None:
    decision = decision_of(decided(EVENTS, "D7"))
    assert decision is not None
    told = explain(decision)
    assert (told.rule, told.action, told.page) == ("D7", "finish(max_steps)", f"{PAGE}#d7")
    assert told.because == "the turn has 3 steps, and at most 3 are allowed"
    assert told.read == {"steps": 3, "max_steps": 3, "last": "tool"}
    assert [each.rule for each in told.passed] == [rule.id for rule in RULES[:8]]
    assert told.passed[-1] == PassedBy("D6", "finish(complete)", "the newest message that counts is of role tool")
    # Of other facts other words: nothing is looked up elsewhere.
    other = replace(decision, facts={"steps": 1, "max_steps": 9})
    assert explain(other).because == "the turn has 1 step, and at most 9 are allowed"
    one = replace(decision, facts={"steps": 1, "max_steps": 1})
    assert explain(one).because == "the turn has 1 step, and at most 1 is allowed"
    spent = replace(decision, rule="D7b", facts={"turns": 1, "limit": 1})
    assert explain(spent).because == "1 turn is spent, of 1"


def test_a_rule_of_another_release_is_told_by_its_facts() -> None:
    decision = Decision(rule="D99", action="sing", facts={"songs": 3, "loud": True}, passed=("D0", "D98"))
    told = explain(decision)
    assert told.because == "songs is 3, loud is true; this release has no rule of that name"
    assert (told.when, told.page) == (None, PAGE)
    assert told.passed[1] == PassedBy("D98", None, f"{NOT_RECORDED}; this release has no rule of that name")
    assert why(Decision(rule="D99", action="sing")) == "this release has no rule of that name"


def test_an_event_is_told_by_what_is_behind_it() -> None:
    step = decided(EVENTS, "D1").version + 2
    assert TOLD[step - 1] == Cause(
        version=step,
        event="step_committed",
        because="it is what came of attempt 1, which version 6 began",
        decided_at=6,
    )
    assert [cause.because for cause in TOLD[step - 4 : step - 1]] == [
        "it is what came of attempt 1, which version 4 began: the model calls look_up",
        "1 local call may run: look_up (5.0.1)",
        "it is what came of attempt 1, which version 6 began: the result of look_up (5.0.1)",
    ]
    assert TOLD[0].because == "the user ada began the chat with agent support and sent a message"
    assert (TOLD[1].because, TOLD[1].decided_at) == ("a worker took the chat up", None)
    assert TOLD[16].event == "results_submitted"
    assert TOLD[16].because == "the user gave the result of where (15.0.0)"
    for cause, recorded in zip(TOLD, EVENTS, strict=True):
        decision = decision_of(recorded)
        assert (cause.version, cause.event) == (recorded.version, recorded.envelope.type)
        assert (cause.decision is None) is (decision is None)
        if cause.decision is not None:
            assert cause.decided_at == cause.version
            assert cause.because.startswith(cause.decision.because)


def test_what_the_client_is_asked_for_is_told_and_that_it_did_not_answer() -> None:
    at = next(at for at, each in enumerate(EVENTS) if isinstance(each.event, v.ActionRequired))
    assert TOLD[at].because == "the client owes 1 call: the result of where (15.0.0)"
    expired = Recorded(replace(EVENTS[at].envelope, version=at + 2, type="x"), v.ActionExpired(action=at + 1))
    said = list(causes([*EVENTS[: at + 1], expired]))[-1].because
    asked_at = f"at version {at + 1} the client was asked for the result of where (15.0.0)"
    assert said == f"{asked_at}, and nothing came within 300 s"


CALL, OTHER = CallKey("5.0.1"), CallKey("5.0.2")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            v.ResultsSubmitted(action=6, approvals=(ApprovalAnswer(call=CALL, approved=True),)),
            "approved look_up (5.0.1)",
        ),
        (
            v.ResultsSubmitted(
                action=6,
                approvals=(
                    ApprovalAnswer(call=CALL, approved=False),
                    ApprovalAnswer(call=OTHER, approved=True, arguments=Content("{}")),
                ),
                added=(result(CALL, is_error=True),),
            ),
            "did not approve look_up (5.0.1), approved 5.0.2 with other arguments",
        ),
        (
            v.ResultsSubmitted(action=6, added=(result(CALL), result(OTHER, is_error=True))),
            "gave the result of look_up (5.0.1), gave an error as the result of 5.0.2",
        ),
        (
            v.ResultsSubmitted(
                action=6,
                budget=BudgetAnswer(end_turn=False, raised=Budget(turns=5, cost_micros=1_500_000, tokens=NO_LIMIT)),
            ),
            "raised the budget to no limit of tokens, 1.5 of cost, 5 turns",
        ),
        (
            v.ResultsSubmitted(action=6, budget=BudgetAnswer(end_turn=False)),
            "let the turn go on with the budget as it is",
        ),
        (v.ResultsSubmitted(action=6, budget=BudgetAnswer(end_turn=True)), "let the turn end, whose budget is spent"),
        (v.MessageSent(model="a/b", effort="low"), "sent a message, with model a/b and effort low from now on"),
        (v.ModelChanged(), "chose the model of the agent from now on"),
        (v.ActiveToolsChanged(tools=("pay", "look_up")), "set the active tools: pay, look_up"),
        (v.AgentChanged(agent="sales"), "gave the chat to agent sales"),
        (v.TitleChanged(title=Content("Secret")), "set the title"),
        (v.TurnInterrupted(), "interrupted the turn"),
    ],
)
def test_what_a_user_did_is_told_without_a_text(event: v.Event, said: str) -> None:
    envelope = replace(EVENTS[0].envelope, version=6, type=event.type, actor=Actor(kind="user"))
    cause = list(causes([*EVENTS[:5], Recorded(envelope, event)]))[-1]
    assert cause.because == f"the user {said}"


RATE = ErrorInfo(kind="rate_limit", message=Content("Slow down."), status_code=429)
LOST = ErrorInfo(kind="worker_lost", message=Content("Lost."))
CALLS = (CallKey("5.0.1"), CallKey("5.0.2"))


@pytest.mark.parametrize(
    ("event", "said", "decided_at"),
    [
        (
            v.RetryScheduled(attempt=1, delay_us=1_500_000, not_before=0, error=RATE),
            "attempt 1, which version 4 began, failed: rate_limit, status 429; it is tried again after 1.5 s",
            4,
        ),
        (v.TurnFailed(error=RATE, attempt=1), "attempt 1, which version 4 began, failed: rate_limit, status 429", 4),
        (
            v.TurnFailed(error=LOST, unknown=CALLS),
            "the turn could not go on: worker_lost; whether 5.0.1, 5.0.2 took effect is not known",
            None,
        ),
        (
            v.Acquired(worker=WorkerId("w"), epoch=2, release="0.1.0", takeover=True, unknown=CALLS[:1]),
            "the holder before was dead, and a worker took the chat over; whether 5.0.1 took effect is not known",
            None,
        ),
        (v.Released(reason="agent_not_here"), "the worker does not have the chat's agent", None),
        (v.InterruptionFinished(), "a user ended the turn at version 5", None),
        (
            v.ActionExpired(action=12),
            "the client did not answer before the deadline of what it was asked at version 12",
            None,
        ),
        (v.Reconciled(error=LOST), "its state was one that must not be, and was repaired: worker_lost", None),
        (v.ContextMarked(mark="stale"), "a worker marked the context as stale, beside the turns", None),
    ],
    ids=lambda value: value.type if isinstance(value, EventBase) else str(value)[-20:],
)
def test_the_words_of_other_events(event: v.Event, said: str, decided_at: int | None) -> None:
    worker = EVENTS[1].envelope
    interrupted = Recorded(replace(EVENTS[0].envelope, version=5, type="turn_interrupted"), v.TurnInterrupted())
    tail = [interrupted, Recorded(replace(worker, version=6, type=event.type), event)]
    cause = list(causes([*EVENTS[:4], *tail]))[-1]
    assert (cause.because, cause.decided_at, cause.decision) == (said, decided_at, None)


@pytest.mark.parametrize("actor", get_args(ActorKind))
def test_no_event_is_without_words(actor: ActorKind) -> None:
    samples = [*EVENTS_V0_1.values(), *EVENTS_V0_2.values()]
    assert {type(event) for event in samples} == set(REGISTRY.types.values())
    for event in samples:
        envelope = replace(EVENTS[0].envelope, actor=Actor(kind=actor), type=event.type)
        (cause,) = causes([Recorded(envelope, event)])
        assert cause.because
        assert cause.event == event.type
