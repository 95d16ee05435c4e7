"""What decisions record beside the facts by which their rule held, and what that says in words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from chatfold._docs.rules_explained import EXPLAINED
from events.control import Control, QueueItem, RunningAttempt
from events.ids import MessageId
from events.records import Budget, Decision, Policy
from events.state import ChatState
from generation.decide import RULES, decide_again, decide_generation_action, empty_answer, reading
from generation.decision import Finish
from generation.due import decision_due
from generation.rule_words import NOT_RECORDED, WORDS
from tests.generation.test_decide import (
    ALONE,
    CLIENT,
    LOCAL,
    MODEL,
    OVER,
    POLICY,
    ROWS,
    TOKENS,
    WAITING,
    controls,
    policies,
    state,
)

GENERATING = RunningAttempt(attempt=1, kind="generate", started_at=0)
USERS = {"last": "user", "max_steps": 3, "threshold": 700}
QUEUE = (QueueItem(id=MessageId("9.0")),)
PRICED = replace(POLICY, model=replace(MODEL, price_input=1))

READ: dict[str, tuple[ChatState, Policy, dict[str, Any]]] = {
    "a message to answer": (state(), POLICY, USERS),
    "steps and tokens": (
        state({"steps": 2, "context_tokens": 99}),
        POLICY,
        {**USERS, "steps": 2, "context_tokens": 99},
    ),
    "no limit": (state(), replace(POLICY, model=replace(MODEL, context_limit=None)), {"last": "user", "max_steps": 3}),
    "an answer": (state({"last_role": "assistant"}), POLICY, {}),
    "an answer that a queue waits behind": (state({"last_role": "assistant"}, queue=QUEUE), POLICY, {"queue": 1}),
    "an interrupted answer": (
        state({"last_role": "assistant", "last_interrupted": True}),
        POLICY,
        {**USERS, "last": "assistant", "interrupted": True},
    ),
    "local calls": (state({"open_calls": (LOCAL, CLIENT, WAITING)}), POLICY, {"client": 1, "approvals": 1}),
    "calls refused as one": (state({"open_calls": (ALONE, CLIENT)}), POLICY, {"client": 1, "exclusive": 1}),
    "a compaction with nothing to compact": (
        state(compaction="requested"),
        POLICY,
        {**USERS, "compaction": "requested", "assistants_after_boundary": 0},
    ),
    "a budget with room": (
        state(usage=TOKENS, cost_micros=5),
        replace(PRICED, budget=Budget(tokens=101, cost_micros=9, turns=4)),
        {
            **USERS,
            "tokens": 100,
            "tokens_limit": 101,
            "cost_micros": 5,
            "cost_micros_limit": 9,
            "turns": 0,
            "turns_limit": 4,
        },
    ),
    "a context that is there": (
        state({"context_source": "files", "context_revision": "r1"}),
        replace(POLICY, context_source="files", context_revision="r1"),
        {**USERS, "source": "files"},
    ),
    "another source": (
        state({"context_source": "wiki", "context_revision": "r1"}),
        replace(POLICY, context_source="files"),
        {"last": "user", "max_steps": 3, "recorded_source": "wiki"},
    ),
    "over, and nothing follows the boundary": (
        state({"context_tokens": 800, "boundary": "1.0", "visible_after": 0}),
        POLICY,
        {**USERS, "context_tokens": 800, "boundary": True, "visible_after": 0},
    ),
    "still over": (state(OVER), POLICY, {"last": "user", "max_steps": 3, "boundary": True, "visible_after": 1}),
}


@pytest.mark.parametrize("name", READ)
def test_a_decision_records_what_was_read_beside_its_facts(name: str) -> None:
    chat, policy, read = READ[name]
    assert decide_generation_action(chat, policy).record.read == read


@given(controls, policies)
def test_what_is_recorded_is_what_the_tried_rules_read_each_thing_once(control: Control, policy: Policy) -> None:
    record = decide_generation_action(ChatState(control=control, transcript=None), policy).record
    everything = reading(control, policy)
    assert record.read.keys().isdisjoint(record.facts)
    assert record.read.items() <= everything.items()
    assert record.evidence == {**record.read, **record.facts}
    tried = (*record.passed, record.rule)
    named = {name for rule in tried for name in EXPLAINED[rule].reads} | {"queue"}
    assert record.evidence.keys() <= named


@given(controls, policies)
def test_every_decision_can_be_told_in_words(control: Control, policy: Policy) -> None:
    record = decide_generation_action(ChatState(control=control, transcript=None), policy).record
    by_id = {rule.id: rule for rule in RULES}
    said = [by_id[record.rule].why(record.evidence), *(by_id[id_].why_not(record.evidence) for id_ in record.passed)]
    assert all(said)
    assert NOT_RECORDED not in said
    assert not [text for text in said if "None" in text.replace("wanted None", "")], said


def test_each_rule_has_its_words_and_its_explanation() -> None:
    ids = [rule.id for rule in RULES]
    assert list(WORDS) == ids == list(EXPLAINED)


WHY = {
    "no model": "the policy has no model",
    "no steps": "max steps is 0",
    "a local call": "1 local call may run",
    "a recorded call runs no more": "2 local calls may run, 1 of them with a result",
    "an exclusive call draws the client's in": (
        "2 calls are open and one of them must be alone, so all are refused as one"
    ),
    "client calls": "the client owes 1 call",
    "a message to answer": "nothing else is to be done: the model answers to the user message, in attempt 5",
}


@pytest.mark.parametrize("name", WHY)
def test_why_a_rule_held(name: str) -> None:
    row = ROWS[name]
    record = decide_generation_action(row.chat, row.policy).record
    assert WORDS[record.rule].why(record.evidence) == WHY[name]


WHY_NOT = {
    "a compaction with nothing to compact": ("D3", "a compaction was asked for, and there is no answer to compact"),
    "an interrupted answer": ("D6", "the newest message that counts is an answer that was interrupted"),
    "steps and tokens": ("D7", "the turn has 2 steps, and at most 3 are allowed"),
    "a budget with room": ("D7b", "only 100 of 101 tokens, 0.000005 of 0.000009 of cost, 0 of 4 turns are spent"),
    "a context that is there": ("D8", "the context of files is in history"),
    "a message to answer": ("D9", "history has no boundary"),
    "no limit": ("D10", "no model has a context limit that counts"),
    "over, and nothing follows the boundary": (
        "D10",
        "the newest prompt had 800 tokens, with a threshold of 700, and nothing follows the boundary",
    ),
}


@pytest.mark.parametrize("name", WHY_NOT)
def test_why_a_rule_was_passed_by(name: str) -> None:
    chat, policy, _ = READ[name]
    rule, said = WHY_NOT[name]
    record = decide_generation_action(chat, policy).record
    assert rule in record.passed
    assert WORDS[rule].why_not(record.evidence) == said


def test_of_older_decisions_the_words_say_no_more_than_was_recorded() -> None:
    older = Decision(rule="D11", action="generate", facts={"attempt": 1}, passed=("D6", "D7", "D10"))
    said = [WORDS[rule].why_not(older.evidence) for rule in older.passed]
    assert said == ["no finished answer is the newest message that counts", NOT_RECORDED, NOT_RECORDED]
    assert WORDS["D9"].why({"anything": 1}) != ""


def test_an_answer_without_parts_is_decided_again_as_such_and_only_while_a_model_was_asked() -> None:
    chat = state(running=GENERATING)
    record = empty_answer(chat.control)
    assert (record.rule, record.action, record.facts, record.passed) == (
        "D6",
        "finish(complete)",
        {"empty_answer": True},
        (),
    )
    assert WORDS["D6"].why(record.evidence) == "the model answered with nothing, which ends the turn"
    assert decide_again(record, chat, POLICY) == Finish(record=record, cause="complete")
    assert decide_again(record, state(), POLICY) == decide_generation_action(state(), POLICY)
    assert decide_again(replace(record, facts={}), chat, POLICY) == decide_generation_action(chat, POLICY)


@pytest.mark.parametrize(
    ("changes", "ended", "due"),
    [
        ({}, False, True),
        ({"running": GENERATING}, False, False),
        ({"running": GENERATING}, True, True),
        ({"interrupting": True}, False, False),
        ({"status": "pending"}, False, False),
        ({"status": "waiting"}, True, False),
    ],
)
def test_a_decision_is_due_where_nothing_of_a_running_chat_is_under_way(
    changes: dict[str, Any], ended: bool, due: bool
) -> None:
    assert decision_due(state(**changes).control, ended=ended) is due
