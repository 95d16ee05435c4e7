"""Differences: each is named by its path, equal values have none, and no content is said."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from msgspec.structs import replace

from chatstate.classify import X
from events.content import Absent, Content
from events.diff import MISSING, Change, changes, plain, shown
from events.records import Decision
from events.reducer import fold
from events.shared import SharedSequence
from events.vocabulary import MessageSent, TurnFinished
from tests.chatstate import build as b
from tests.chatstate.chat import store
from tests.chatstate.reach import answered, reach
from tests.events.strategies import EVENTS, JSON

DECISION = Decision(rule="D6", action="finish_turn", facts={"last": "assistant"}, passed=("D1", "D2"), policy="p1")


def said(before: object, after: object, *ignore: str) -> list[str]:
    return [str(change) for change in changes(before, after, ignore=ignore)]


def test_fields_keys_and_places_are_named() -> None:
    after = replace(DECISION, facts={"steps": 3}, passed=("D1", "D3", "D4"))
    assert list(changes(DECISION, after)) == [
        Change("$.facts.last", "assistant", MISSING),
        Change("$.facts.steps", MISSING, 3),
        Change("$.passed[1]", "D2", "D3"),
        Change("$.passed[2]", MISSING, "D4"),
    ]
    assert said(DECISION, after)[:2] == ["$.facts.last: 'assistant' -> nothing", "$.facts.steps: nothing -> 3"]


def test_a_part_of_an_event_is_reached() -> None:
    before = TurnFinished(cause="complete", decision=DECISION)
    after = TurnFinished(cause="complete", decision=replace(DECISION, rule="D4"))
    assert said(before, after) == ["$.decision.rule: 'D6' -> 'D4'"]


def test_other_types_are_other_values() -> None:
    assert said({"a": 1, "b": 1, "c": None}, {"a": True, "b": 1.0, "c": False}) == [
        "$.a: 1 -> true",
        "$.b: 1 -> 1.0",
        "$.c: none -> false",
    ]
    assert [change.path for change in changes(TurnFinished(cause="complete", decision=DECISION), DECISION)] == ["$"]


def test_keys_that_are_no_names_are_quoted() -> None:
    assert [change.path for change in changes({"a b": 1, "x.y": {"z": 1}}, {"a b": 2, "x.y": {"z": 2}})] == [
        "$['a b']",
        "$['x.y'].z",
    ]


def test_contents_are_compared_and_not_said() -> None:
    secret, other = Content("secret"), Content("SECRET")
    assert said({"text": secret}, {"text": other}) == ["$.text: 6 B -> another one of 6 B"]
    assert said({"text": secret}, {"text": Content(Absent.ERASED, 6)}) == ["$.text: 6 B -> 6 B, erased"]
    assert said({"text": secret}, {"text": Content("secret")}) == []
    message = b.user("secret")
    whole = Change("$", message, MISSING)
    assert "secret" not in str(whole)
    assert "secret" not in json.dumps(plain(message)) + repr(whole)


def test_stored_bytes_are_not_said() -> None:
    stored = store(reach(X.W, work=answered).log[1])
    changed = replace(stored, content=b'["secret"]')
    assert "secret" not in json.dumps(plain(changed)) + "".join(said(stored, changed)) + shown(changed)


def test_what_is_ignored_is_not_looked_at() -> None:
    before = MessageSent(added=(b.user("a"), b.user("b")))
    after = MessageSent(added=(b.user("c"), replace(b.user("d"), author="me")))
    assert said(before, after, "$.added[].parts") == ["$.added[1].author: none -> 'me'"]
    assert said(before, after, "$.added") == []
    assert said(before, after, "$") == []


def test_states_are_compared_with_their_messages() -> None:
    chat = reach(X.W, work=answered)
    half = fold(chat.log[:2])
    found = {change.path for change in changes(half, fold(chat.log[2:], half))}
    assert "$.control.version" in found
    assert any(path.startswith("$.transcript.messages[") for path in found)
    assert not list(changes(fold(chat.log), fold(chat.log)))


def test_what_two_sequences_share_is_not_compared() -> None:
    class Dear:
        def __eq__(self, other: object) -> bool:
            raise AssertionError(other)

        __hash__ = None  # type: ignore[assignment]

    shared = SharedSequence[object]([Dear() for _ in range(3)])
    assert list(changes(shared.append(1), shared)) == [Change("$[3]", 1, MISSING)]
    assert list(changes(shared.before(2), shared.append(2).before(2))) == []


@given(EVENTS)
def test_an_event_is_no_other_than_itself(event: Any) -> None:
    assert not list(changes(event, replace(event)))
    json.dumps(plain(event))


@given(EVENTS, EVENTS)
def test_events_differ_exactly_where_they_are_unequal(one: Any, other: Any) -> None:
    found = list(changes(one, other))
    assert bool(found) is (one != other)
    back = {change.path: (change.after, change.before) for change in changes(other, one)}
    assert {change.path: (change.before, change.after) for change in found} == back


@given(JSON, JSON)
def test_any_data_is_compared(one: Any, other: Any) -> None:
    found = list(changes(one, other))
    assert bool(found) is (json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True))
    assert all(str(change) for change in found)
