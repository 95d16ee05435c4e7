"""Decision replay: what is in order says nothing, and each thing that is not is told with its version and its kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chatfold.replaying.decisions import DecisionCheck, WhatIf, WhatIfFailed, decision_drifts, needs_transcript
from events.envelope import Recorded
from events.levels import readable_at
from events.records import Decision, Policy
from events.reducer import fold
from events.state import ChatState
from events.vocabulary import InterruptionFinished, PolicyRecorded, TurnInterrupted
from generation.decide import RULES, decide_generation_action, empty_answer
from generation.decision import Finish, Generate, GenerationDecision
from tests.chatfold.replaying.kit import changed, decided, decision_of, events_of, helped, redecided

EVENTS = events_of(helped())
DECIDED = [each.version for each in EVENTS if decision_of(each) is not None]


def told(events: list[Recorded], what_if: WhatIf | None = None) -> list[tuple[int, str]]:
    return [(drift.version, drift.kind) for drift in decision_drifts(events, what_if)]


def without(*versions: int) -> list[Recorded]:
    return [each for each in EVENTS if each.version not in versions]


def test_the_log_has_several_rules_and_none_drifts() -> None:
    rules = {decision.rule for each in EVENTS if (decision := decision_of(each)) is not None}
    assert rules == {"D1", "D2", "D4", "D6", "D7", "D11"}
    for transcript in (True, False):
        check = DecisionCheck(transcript=transcript)
        assert [check.take(each) for each in EVENTS] == [None] * len(EVENTS)
        assert check.decisions == len(DECIDED)


def test_another_rule_is_told_with_both_and_what_differs() -> None:
    version = decided(EVENTS, "D4").version
    there = decision_of(EVENTS[version - 1])
    other = Decision(rule="D6", action="finish(complete)", facts={"last": "assistant"}, policy=there.policy)  # type: ignore[union-attr]  # it is there
    (drift,) = decision_drifts(changed(EVENTS, version, decision=other, cause="complete"))
    assert (drift.version, drift.kind, drift.then, drift.now) == (version, "rule", other, there)
    paths = [change.path for change in drift.changes]
    assert paths[:2] == ["$.decision.rule", "$.decision.action"]
    assert "$.what" in paths
    assert str(drift).startswith(
        f"version {version}: then D6 finish(complete), now D4 finish(stop_after_tool); another rule holds; "
        "$.decision.rule: 'D6' -> 'D4'; "
    )


@pytest.mark.parametrize(
    ("rule", "fields", "path"),
    [
        ("D1", {"kind": "generate"}, "$.what"),
        ("D1", {"calls": ()}, "$.calls[0]"),
        ("D6", {"cause": "max_steps"}, "$.what"),
        ("D11", {"kind": "compact"}, "$.what"),
    ],
)
def test_a_decision_that_was_carried_out_otherwise_is_told(rule: str, fields: dict[str, Any], path: str) -> None:
    version = decided(EVENTS, rule).version
    drift = next(decision_drifts(changed(EVENTS, version, **fields)))
    assert (drift.version, drift.kind, [change.path for change in drift.changes]) == (version, "action", [path])


_MISREAD: dict[str, Callable[[Decision], Decision]] = {
    "rule": lambda decision: replace(decision, rule="D0" if decision.rule != "D0" else "D1"),
    "action": lambda decision: replace(decision, action=f"{decision.action}!"),
    "facts": lambda decision: replace(decision, facts={**decision.facts, "more": 1}),
    "passed": lambda decision: replace(decision, passed=decision.passed[1:] if decision.passed else ("D0",)),
    "policy": lambda decision: replace(decision, policy="another"),
    "read": lambda decision: replace(decision, read={**decision.read, "queue": 7}),
}


@given(version=st.sampled_from(DECIDED), field=st.sampled_from(sorted(_MISREAD)))
def test_each_field_of_each_decision_is_compared(version: int, field: str) -> None:
    (drift,) = decision_drifts(redecided(EVENTS, version, _MISREAD[field]))
    assert drift.version == version
    assert drift.kind == (field if field in ("rule", "action") else "facts")
    assert {change.path.split(".")[2].partition("[")[0] for change in drift.changes} == {field}


def test_a_decision_that_the_log_lacks_is_told_where_the_next_outcome_comes() -> None:
    first, tools = decided(EVENTS, "D11").version, decided(EVENTS, "D1").version
    assert told(without(first)) == [(first + 1, "missing")]
    (drift,) = decision_drifts(without(tools))
    assert (drift.version, drift.kind, drift.then) == (tools + 1, "missing", None)
    assert drift.now == decision_of(EVENTS[tools - 1])
    assert str(drift) == f"version {tools + 1}: then nothing, now D1 run_tools; a decision is due, and the log has none"


def test_a_decision_that_was_due_before_a_user_came_in_between_is_told_too() -> None:
    """The worker has to go on in the append that made it due, so that the turn's end is no excuse."""
    step = decided(EVENTS, "D1").version - 1
    envelope = EVENTS[step].envelope
    user = replace(envelope, actor=EVENTS[0].envelope.actor, type=TurnInterrupted.type, source="running")
    ended = replace(envelope, version=step + 2, type=InterruptionFinished.type, dest="waiting")
    events = [
        *EVENTS[:step],
        Recorded(user, TurnInterrupted()),
        Recorded(ended, InterruptionFinished()),
    ]
    assert told(events) == [(step + 2, "missing")]
    # A holder that is gone owes nothing: the one that takes over does.
    taken = replace(events[-1], envelope=replace(ended, type=EVENTS[1].envelope.type), event=EVENTS[1].event)
    assert told([*events[:-1], taken]) == []


def test_a_decision_where_none_is_due_is_told() -> None:
    start = decided(EVENTS, "D2")
    twice = replace(start, envelope=replace(start.envelope, version=start.version + 1))
    assert told([*EVENTS[: start.version], twice]) == [(start.version + 1, "undue")]


def test_a_policy_that_is_not_recorded_is_told_for_each_decision_under_it() -> None:
    recorded = next(each.version for each in EVENTS if isinstance(each.event, PolicyRecorded))
    assert told(without(recorded)) == [(version, "policy") for version in DECIDED]


def test_what_an_older_level_did_not_record_is_no_drift_and_from_the_newer_one_on_it_is() -> None:
    older = [replace(each, event=readable_at(each.event, 1)) for each in EVENTS]
    assert all(not decision.read for each in older if (decision := decision_of(each)) is not None)
    assert told(older) == []
    # A chat that was written under the older level and goes on under the newest.
    middle = decided(EVENTS, "D4").version
    assert told([*older[:middle], *EVENTS[middle:]]) == []
    later = [version for version in DECIDED if version > middle and decision_of(EVENTS[version - 1]).read]  # type: ignore[union-attr]  # decided
    assert told([*older[:middle], *EVENTS[middle : later[0]], *older[later[0] :]]) == [
        (version, "facts") for version in later[1:]
    ]


def test_an_answer_without_parts_is_the_engines_own_decision_whoever_decides() -> None:
    version = decided(EVENTS, "D6").version
    before, start = EVENTS[: version - 2], EVENTS[version - 3]
    end = EVENTS[version - 1]
    done = replace(end.event, decision=empty_answer(fold(before).control))
    assert start.envelope.type == "attempt_started"
    events = [*before, Recorded(replace(end.envelope, version=version - 1), done)]
    assert told(events) == []
    assert told(events, WhatIf(decide=decide_generation_action)) == []


def test_with_another_policy_only_what_would_have_been_done_is_compared() -> None:
    assert told(EVENTS, WhatIf(policy=lambda policy: replace(policy, max_steps=1000))) == [(47, "rule")]
    drifts = list(decision_drifts(EVENTS, WhatIf(policy=lambda policy: replace(policy, max_steps=2))))
    assert [drift.now.rule for drift in drifts if drift.now is not None] == ["D7"]
    assert {change.path for change in drifts[0].changes} == {
        "$.decision.rule",
        "$.decision.action",
        "$.event",
        "$.what",
    }


def test_a_decide_function_of_ones_own_is_asked_at_each_decision() -> None:
    asked: list[str] = []

    def never_tools(state: ChatState, policy: Policy) -> GenerationDecision:
        asked.append(policy.agent)
        decision = decide_generation_action(state, policy)
        if decision.record.rule == "D4":
            return Generate(record=replace(decision.record, rule="mine", action="generate"))
        return decision

    (drift,) = decision_drifts(EVENTS, WhatIf(decide=never_tools))
    assert (drift.version, drift.kind) == (decided(EVENTS, "D4").version, "rule")
    assert len(asked) == len(DECIDED)


def test_a_rule_of_ones_own_name_that_does_the_same_is_no_drift() -> None:
    def renamed(state: ChatState, policy: Policy) -> GenerationDecision:
        decision = decide_generation_action(state, policy)
        return replace(decision, record=replace(decision.record, rule="mine", facts={}))

    assert told(EVENTS, WhatIf(decide=renamed)) == []


def _raises(*_: object) -> Any:
    raise KeyError("lost")


def _leaves(*_: object) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("what_if", "why"),
    [
        (WhatIf(decide=_raises), "the decide function raised KeyError: 'lost'"),
        (WhatIf(decide=_leaves), "the decide function raised SystemExit: 3"),
        (WhatIf(policy=_raises), "the policy function raised KeyError: 'lost'"),
        (WhatIf(policy=lambda _: None), "the policy function gave NoneType, and must give Policy"),  # type: ignore[arg-type, return-value]  # what is wrong
        (WhatIf(decide=lambda *_: "D1"), "the decide function gave str, and must give RunTools or "),  # type: ignore[arg-type]  # what is wrong
    ],
)
def test_what_fails_of_ones_own_is_told_with_the_version(what_if: WhatIf, why: str) -> None:
    with pytest.raises(WhatIfFailed) as failed:
        list(decision_drifts(EVENTS, what_if))
    assert failed.value.version == DECIDED[0]
    assert str(failed.value).startswith(f"version {DECIDED[0]}: {why}")


def test_a_changed_rule_is_found_where_it_decides_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the check is for: the code of today decides otherwise than the log says."""
    from generation import decide

    more_steps = tuple(
        each._replace(rule=each.rule._replace(holds=lambda control, policy: None)) if each.rule.id == "D7" else each
        for each in decide._IN_ORDER
    )
    assert len(more_steps) == len(RULES)
    monkeypatch.setattr(decide, "_IN_ORDER", more_steps)
    (drift,) = decision_drifts(EVENTS)
    assert drift.then is not None
    assert drift.now is not None
    assert (drift.version, drift.then.rule, drift.now.rule) == (47, "D7", "D11")


def test_which_logs_need_their_transcript() -> None:
    assert not needs_transcript(each.envelope.type for each in EVENTS)
    assert needs_transcript(["chat_created", "message_edited"])
    assert needs_transcript(["compaction_undone"])


def test_ending_a_turn_otherwise_is_a_drift_of_its_own_decider() -> None:
    def at_once(state: ChatState, policy: Policy) -> GenerationDecision:
        return Finish(record=decide_generation_action(state, policy).record, cause="complete")

    assert told(EVENTS, WhatIf(decide=at_once))[0] == (DECIDED[0], "action")
