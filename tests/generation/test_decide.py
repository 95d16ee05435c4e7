"""The decision rules, one by one and in their order: the facts they record, the rules passed by, the action."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from events.control import Control, Indexes, OpenCall, refused_as_one
from events.ids import CallKey
from events.messages import Usage
from events.records import NO_LIMIT, Budget, ModelPolicy, Policy
from events.state import ChatState
from generation.decide import RULES, decide_generation_action
from generation.decision import (
    AskClient,
    CollectContext,
    Compact,
    Fail,
    Finish,
    Generate,
    GenerationDecision,
    RunTools,
)
from generation.reading import compaction_threshold

MODEL = ModelPolicy(provider="scripted", name="m", context_limit=1000)
POLICY = Policy(agent="helper", revision="1", model=MODEL, max_steps=3)

LOCAL = OpenCall(key=CallKey("3.0#0"), name="look", runner="local")
ALONE = OpenCall(key=CallKey("3.0#1"), name="alone", runner="local", exclusive=True)
RECORDED = OpenCall(key=CallKey("3.0#2"), name="look", runner="local", started=True, recorded=True)
CLIENT = OpenCall(key=CallKey("3.0#3"), name="ask", runner="client")
WAITING = OpenCall(key=CallKey("3.0#4"), name="pay", runner="local", needs_approval=True)
APPROVED = replace(WAITING, approved=True)
PROVIDERS = OpenCall(key=CallKey("3.0#5"), name="search", runner="provider")


def state(indexes: dict[str, Any] | None = None, **changes: Any) -> ChatState:
    """A running chat that has a user's message to answer, but for what is said."""
    made = Indexes(**{"messages": 1, "last_role": "user", "visible_after": 1, **(indexes or {})})
    control = Control(chat="chat", version=7, status="running", policy="digest", turns=1, owed=True, indexes=made)
    return ChatState(control=replace(control, **changes), transcript=None)


class Row(NamedTuple):
    rule: str
    action: str
    chat: ChatState
    facts: dict[str, Any]
    decided: type[GenerationDecision]
    policy: Policy = POLICY
    rest: dict[str, Any] = {}  # noqa: RUF012 - a row is a constant


TOKENS = Usage(input=40, output=30, cache_read=20, cache_write=10)
OVER = {"boundary": "1.0", "first_context_tokens": 800, "context_tokens": 800}

ROWS = {
    "no model": Row(
        "D0", "fail", state(), {"max_steps": 3, "model": None}, Fail, replace(POLICY, model=None), {"kind": "config"}
    ),
    "no steps": Row("D0", "fail", state(), {"max_steps": 0, "model": "m"}, Fail, replace(POLICY, max_steps=0)),
    "a local call": Row(
        "D1",
        "run_tools",
        state({"open_calls": (LOCAL,)}),
        {"local": 1, "recorded": 0},
        RunTools,
        rest={"calls": (LOCAL.key,)},
    ),
    "local and client calls": Row(
        "D1",
        "run_tools",
        state({"open_calls": (LOCAL, CLIENT)}),
        {"local": 1, "recorded": 0},
        RunTools,
        rest={"calls": (LOCAL.key,)},
    ),
    "an exclusive call draws the client's in": Row(
        "D1",
        "run_tools",
        state({"open_calls": (ALONE, CLIENT)}),
        {"local": 1, "recorded": 0, "refused": 2},
        RunTools,
        rest={"calls": (ALONE.key, CLIENT.key)},
    ),
    "and those that wait for approval": Row(
        "D1",
        "run_tools",
        state({"open_calls": (ALONE, WAITING, CLIENT)}),
        {"local": 1, "recorded": 0, "refused": 3},
        RunTools,
        rest={"calls": (ALONE.key, WAITING.key, CLIENT.key)},
    ),
    "an exclusive call of the client draws the local one in": Row(
        "D1",
        "run_tools",
        state({"open_calls": (LOCAL, replace(CLIENT, exclusive=True))}),
        {"local": 1, "recorded": 0, "refused": 2},
        RunTools,
        rest={"calls": (LOCAL.key, CLIENT.key)},
    ),
    "client calls of which one must be alone": Row(
        "D1",
        "run_tools",
        state({"open_calls": (CLIENT, replace(CLIENT, key=CallKey("3.0#9"), exclusive=True))}),
        {"local": 0, "recorded": 0, "refused": 2},
        RunTools,
        rest={"calls": (CLIENT.key, CallKey("3.0#9"))},
    ),
    "an exclusive call that waits for approval beside a client's": Row(
        "D1",
        "run_tools",
        state({"open_calls": (CLIENT, replace(WAITING, exclusive=True))}),
        {"local": 0, "recorded": 0, "refused": 2},
        RunTools,
        rest={"calls": (CLIENT.key, WAITING.key)},
    ),
    "refusals of which one is recorded": Row(
        "D1",
        "run_tools",
        state({"open_calls": (RECORDED, replace(CLIENT, exclusive=True))}),
        {"local": 1, "recorded": 1, "refused": 2},
        RunTools,
        rest={"calls": (CLIENT.key,)},
    ),
    "a recorded call runs no more": Row(
        "D1",
        "run_tools",
        state({"open_calls": (RECORDED, LOCAL)}),
        {"local": 2, "recorded": 1},
        RunTools,
        rest={"calls": (LOCAL.key,)},
    ),
    "all recorded": Row(
        "D1",
        "run_tools",
        state({"open_calls": (RECORDED,)}),
        {"local": 1, "recorded": 1},
        RunTools,
        rest={"calls": ()},
    ),
    "approved": Row("D1", "run_tools", state({"open_calls": (APPROVED,)}), {"local": 1, "recorded": 0}, RunTools),
    "client calls": Row(
        "D2", "require_action", state({"open_calls": (CLIENT,)}), {"client": 1, "approvals": 0}, AskClient
    ),
    "an exclusive call of the client alone": Row(
        "D2",
        "require_action",
        state({"open_calls": (replace(CLIENT, exclusive=True),)}),
        {"client": 1, "approvals": 0},
        AskClient,
    ),
    "approvals": Row(
        "D2",
        "require_action",
        state({"open_calls": (CLIENT, WAITING)}),
        {"client": 1, "approvals": 1},
        AskClient,
        rest={"budget": False},
    ),
    "budget ended": Row(
        "D2b", "finish(budget)", state(budget_ended=True), {"answer": "end_turn"}, Finish, rest={"cause": "budget"}
    ),
    "compaction asked for": Row(
        "D3",
        "compact(manual)",
        state({"assistants_after": 2}, compaction="requested"),
        {"assistants_after_boundary": 2},
        Compact,
        rest={"manual": True},
    ),
    "stop after": Row("D4", "finish(stop_after_tool)", state({"stop_after": True}), {"stop_after_tool": True}, Finish),
    "compacted": Row(
        "D5",
        "finish(compacted)",
        state(compaction="committed"),
        {"compaction": "committed"},
        Finish,
        rest={"cause": "compacted"},
    ),
    "answered": Row(
        "D6",
        "finish(complete)",
        state({"last_role": "assistant", "steps": 3}),
        {"last": "assistant"},
        Finish,
        rest={"cause": "complete"},
    ),
    "steps used": Row(
        "D7",
        "finish(max_steps)",
        state({"last_role": "tool", "steps": 3}),
        {"steps": 3, "max_steps": 3},
        Finish,
        rest={"cause": "max_steps"},
    ),
    "tokens spent": Row(
        "D7b",
        "require_action(budget)",
        state(usage=TOKENS),
        {"tokens": 100, "limit": 100},
        AskClient,
        replace(POLICY, budget=Budget(tokens=100)),
        {"budget": True},
    ),
    "cost spent": Row(
        "D7b",
        "require_action(budget)",
        state(cost_micros=7),
        {"cost_micros": 7, "limit": 5},
        AskClient,
        replace(POLICY, budget=Budget(cost_micros=5)),
    ),
    "turns spent": Row(
        "D7b",
        "require_action(budget)",
        state(turns=3),
        {"turns": 2, "limit": 2},
        AskClient,
        replace(POLICY, budget=Budget(turns=2)),
    ),
    "a raised limit beside none of the agent's": Row(
        "D7b", "require_action(budget)", state(turns=3, budget=Budget(turns=2)), {"turns": 2, "limit": 2}, AskClient
    ),
    "a limit that stays while another was raised": Row(
        "D7b",
        "require_action(budget)",
        state(turns=3, usage=TOKENS, budget=Budget(tokens=1000)),
        {"turns": 2, "limit": 2},
        AskClient,
        replace(POLICY, budget=Budget(turns=2, tokens=100)),
    ),
    "context missing": Row(
        "D8",
        "persist_context",
        state(),
        {"source": "files", "recorded": None, "wanted": "r2"},
        CollectContext,
        replace(POLICY, context_source="files", context_revision="r2"),
    ),
    "context of another revision": Row(
        "D8",
        "persist_context",
        state({"context_source": "files", "context_revision": "r1"}),
        {"source": "files", "recorded": "r1", "wanted": "r2"},
        CollectContext,
        replace(POLICY, context_source="files", context_revision="r2"),
    ),
    "context marked for refresh": Row(
        "D8",
        "persist_context",
        state({"context_source": "files", "context_revision": "r1"}, context_refresh_at=1, context_stale_since=1),
        {"source": "files", "recorded": "r1", "wanted": None, "refresh": True},
        CollectContext,
        replace(POLICY, context_source="files"),
    ),
    "still over": Row(
        "D9",
        "fail(over_limit)",
        state(OVER),
        {"context_tokens": 800, "first_context_tokens": 800, "threshold": 700},
        Fail,
        rest={"kind": "config"},
    ),
    "over": Row(
        "D10",
        "compact(automatic)",
        state({"context_tokens": 700, "first_context_tokens": 10, "boundary": "1.0"}),
        {"context_tokens": 700, "threshold": 700},
        Compact,
        rest={"manual": False},
    ),
    "a message to answer": Row("D11", "generate", state(attempt=4), {"attempt": 5}, Generate),
    "an interrupted answer": Row(
        "D11", "generate", state({"last_role": "assistant", "last_interrupted": True}), {"attempt": 1}, Generate
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_rule_records_what_it_read_and_what_it_passed_by(name: str) -> None:
    row = ROWS[name]
    decision = decide_generation_action(row.chat, row.policy)
    record = decision.record
    assert (record.rule, record.action, record.facts, record.policy) == (row.rule, row.action, row.facts, "digest")
    ids = [rule.id for rule in RULES]
    assert list(record.passed) == ids[: ids.index(row.rule)]
    assert type(decision) is row.decided
    assert {key: getattr(decision, key) for key in row.rest} == row.rest


def test_each_rule_has_a_row() -> None:
    assert {row.rule for row in ROWS.values()} == {rule.id for rule in RULES}
    assert {row.action for row in ROWS.values()} == {rule.action for rule in RULES}


BETWEEN = {
    "nothing to compact": state(compaction="requested"),
    "a call of the provider is nobody's to run": state({"open_calls": ()}),
    "steps left": state({"last_role": "tool", "steps": 2}),
    "the step that a hook granted": state({"steps": 3, "more_step": True}),
    "a budget that was raised": state(usage=TOKENS, budget=Budget(tokens=101)),
    "below the threshold": state({"context_tokens": 699, "boundary": "1.0", "first_context_tokens": 699}),
    "nothing after the boundary": state({"context_tokens": 800, "visible_after": 0}),
    "the first answer was over, the newest is not": state({**OVER, "context_tokens": 699}),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_a_rule_that_nearly_holds_does_not(name: str) -> None:
    policy = replace(POLICY, budget=Budget(tokens=100))
    assert decide_generation_action(BETWEEN[name], policy).record.rule == "D11"


def test_rules_come_in_order_where_several_hold() -> None:
    """All conditions hold at once; each in turn is taken away, and the next rule decides."""
    everything = state(
        {
            "open_calls": (LOCAL, CLIENT),
            "assistants_after": 1,
            "stop_after": True,
            "steps": 3,
            "last_role": "tool",
            **OVER,
        },
        budget_ended=True,
        compaction="requested",
        usage=TOKENS,
    )
    policy = replace(POLICY, model=None, budget=Budget(tokens=1), context_source="files")
    took: list[str] = []

    def decide() -> None:
        took.append(decide_generation_action(everything, policy).record.rule)

    decide()
    policy = replace(policy, model=MODEL)
    decide()
    control = everything.control
    for name, value in [
        ("open_calls", (CLIENT,)),
        ("open_calls", ()),
        ("budget_ended", False),
        ("compaction", "none"),
        ("stop_after", False),
        ("steps", 0),
        ("budget", Budget(tokens=NO_LIMIT, cost_micros=NO_LIMIT, turns=NO_LIMIT)),
        ("context_source", "files"),
        ("first_context_tokens", 0),
        ("context_tokens", 0),
    ]:
        target: Any = control.indexes if hasattr(control.indexes, name) else control
        setattr(target, name, value)
        decide()
    assert took == ["D0", "D1", "D2", "D2b", "D3", "D4", "D7", "D7b", "D8", "D9", "D10", "D11"]


def test_the_stricter_threshold_counts() -> None:
    small = ModelPolicy(provider="scripted", name="s", context_limit=500, compaction_threshold=50)
    never = replace(MODEL, compaction_threshold=100)
    assert compaction_threshold(POLICY) == 700
    assert compaction_threshold(replace(POLICY, compaction_model=small)) == 250
    assert compaction_threshold(replace(POLICY, model=never)) is None
    assert compaction_threshold(replace(POLICY, model=replace(MODEL, context_limit=None))) is None
    assert compaction_threshold(replace(POLICY, model=never, compaction_model=small)) == 250


# Of section 1.4: is the trigger met, what is history, what follows.
STATUSES: dict[str, tuple[dict[str, Any], str]] = {
    "met, no boundary: needed": ({"context_tokens": 700}, "D10"),
    "met, the first answer after the boundary is over: still over the limit": (OVER, "D9"),
    "met, something follows the boundary: needed": (
        {"context_tokens": 700, "first_context_tokens": 699, "boundary": "1.0"},
        "D10",
    ),
    "met, nothing new after the boundary: generate": (
        {"context_tokens": 700, "first_context_tokens": 0, "boundary": "1.0", "visible_after": 0},
        "D11",
    ),
    "not met, a boundary and nothing after it: generate": ({"boundary": "1.0", "visible_after": 0}, "D11"),
    "not met, no boundary: generate": ({"context_tokens": 699}, "D11"),
    "not met, an answer that was over stands after the boundary: generate": ({**OVER, "context_tokens": 699}, "D11"),
}


@pytest.mark.parametrize("name", STATUSES)
def test_the_status_of_a_compaction(name: str) -> None:
    indexes, rule = STATUSES[name]
    assert decide_generation_action(state(indexes), POLICY).record.rule == rule


# Limit, threshold in per cent, tokens of the newest prompt; whether these reach the threshold.
SHARES = (
    (1000, 70, 699, False),
    (1000, 70, 700, True),
    (999, 70, 699, False),  # 69.97 %
    (999, 70, 700, True),
    (1001, 70, 700, False),  # 69.93 %
    (1001, 70, 701, True),
    (7, 1, 1, True),  # 14.3 %
    (1000, 99, 990, True),
    (1000, 100, 5000, False),  # 100 is off
    (1000, 0, 0, False),  # nothing was measured
    (1000, 0, 1, True),
    (0, 70, 5000, False),
    (-1, 70, 5000, False),
    (None, 70, 5000, False),
)


@pytest.mark.parametrize(("limit", "percent", "tokens", "met"), SHARES)
def test_a_compaction_is_due_from_the_threshold_on(limit: int | None, percent: int, tokens: int, met: bool) -> None:
    policy = replace(POLICY, model=replace(MODEL, context_limit=limit, compaction_threshold=percent))
    decided = decide_generation_action(state({"context_tokens": tokens}), policy).record.rule
    assert decided == ("D10" if met else "D11")
    # Asked for by hand it takes place whatever the threshold, the limit and the usage.
    asked = state({"context_tokens": tokens, "assistants_after": 1}, compaction="requested")
    assert decide_generation_action(asked, policy).record.rule == "D3"


counts = st.integers(0, 2000)
maybe = st.none() | counts
calls = st.lists(
    st.sampled_from([LOCAL, ALONE, RECORDED, CLIENT, WAITING, APPROVED, PROVIDERS]),
    max_size=3,
    unique_by=lambda call: call.key,
).map(tuple)
indexes = st.builds(
    Indexes,
    messages=counts,
    steps=st.integers(0, 5),
    stop_after=st.booleans(),
    last_role=st.sampled_from([None, "user", "assistant", "tool"]),
    last_interrupted=st.booleans(),
    open_calls=calls,
    boundary=st.sampled_from([None, "1.0"]),
    visible_after=counts,
    assistants_after=counts,
    context_tokens=counts,
    first_context_tokens=counts,
    context_source=st.sampled_from([None, "files"]),
    context_revision=st.sampled_from([None, "r1"]),
)
budgets = st.none() | st.builds(Budget, tokens=maybe, cost_micros=maybe, turns=maybe)
controls = st.builds(
    Control,
    status=st.just("running"),
    policy=st.just("digest"),
    attempt=counts,
    turns=counts,
    cost_micros=counts,
    usage=st.builds(Usage, input=counts, output=counts),
    compaction=st.sampled_from(["none", "requested", "committed"]),
    budget=budgets,
    budget_ended=st.booleans(),
    indexes=indexes,
)
models = st.none() | st.builds(
    ModelPolicy,
    provider=st.just("scripted"),
    name=st.just("m"),
    context_limit=maybe,
    compaction_threshold=st.integers(0, 100),
)
policies = st.builds(
    Policy,
    agent=st.just("helper"),
    revision=st.just("1"),
    model=models,
    compaction_model=models,
    max_steps=st.integers(-1, 5),
    context_source=st.sampled_from([None, "files"]),
    context_revision=st.sampled_from([None, "r1", "r2"]),
    budget=budgets,
)


@given(controls, policies)
def test_there_is_a_decision_for_every_chat_and_it_is_the_first_rule_that_holds(
    control: Control, policy: Policy
) -> None:
    decision = decide_generation_action(ChatState(control=control, transcript=None), policy)
    assert isinstance(decision, get_args(GenerationDecision))
    holding = [rule for rule in RULES if rule.holds(control, policy) is not None]
    record = decision.record
    assert (record.rule, record.action) == (holding[0].id, holding[0].action)
    assert record.facts == holding[0].holds(control, policy)
    assert [rule.id for rule in RULES][: len(record.passed)] == list(record.passed)
    assert len(record.passed) == RULES.index(holding[0])
    if isinstance(decision, RunTools):
        # What it starts, the machine lets it start.
        open_calls = {call.key: call for call in control.indexes.open_calls}
        started = [open_calls[key] for key in decision.calls]
        one = refused_as_one(control.indexes.open_calls)
        assert all(not call.recorded and (call.may_run or one) for call in started)
