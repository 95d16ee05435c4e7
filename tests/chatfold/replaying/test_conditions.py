"""Conditions: what is typed means what the page says, and what cannot be read is said with its place."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatfold.replaying.condition_names import EVENT_NAMES, STATE_NAMES, EventName, Kind, StateName
from chatfold.replaying.conditions import Condition, ConditionError, Moment, parse_condition
from events.codec import decode_each
from events.content import Content
from events.control import Control, Indexes, OpenCall, QueueItem
from events.envelope import Envelope, Recorded
from events.ids import CallKey, CommandId, MessageId, WorkerId
from events.parts import ToolResultPart
from events.reasons import Reason
from events.records import ActionItem, Actor, Decision, ErrorInfo, OpenAction
from events.state import ChatState
from events.vocabulary import AttemptStarted, Event, MessageSent, Released, ToolResultRecorded, TurnFailed
from tests.events.logs import log_of, text
from tests.meta.source import ROOT

CALL = OpenCall(key=CallKey("m1.0"), name="look_up", runner="local")


def state(**fields: object) -> ChatState:
    return ChatState(control=Control(**{"version": 1, **fields}), transcript=None)  # type: ignore[arg-type]


def moment(event: Event, before: ChatState | None = None, after: ChatState | None = None) -> Moment:
    envelope = Envelope(
        version=7,
        type=event.type,
        schema=1,
        recorded_at=1,
        actor=Actor(kind="worker", id="w1"),
        source="running",
        dest="running",
        command=CommandId("c"),
        index=0,
    )
    return Moment(before or state(status="pending"), Recorded(envelope, event), after or state(status="pending"))


SAID = MessageSent(added=(text("Where is order A-17?"),))
STARTED = AttemptStarted(
    attempt=1, kind="tools", decision=Decision(rule="D1", action="run_tools"), calls=(CallKey("m1.0"),)
)
FAILED = TurnFailed(error=ErrorInfo(kind="rate_limit", message=Content("Slow down")))
RESULT = ToolResultRecorded(
    attempt=1, result=ToolResultPart(call=CallKey("m1.0"), is_error=True, reason=Reason.WORKER_LOST)
)
BROKEN = ToolResultRecorded(
    attempt=1, result=ToolResultPart(call=CallKey("m1.0"), is_error=True, output=Content("down"))
)
OPEN = state(indexes=Indexes(open_calls=(CALL,)))
FULL = state(
    status="requires_action",
    queue=(QueueItem(id=MessageId("m9")),),
    indexes=Indexes(context_tokens=1500, steps=3),
    action=OpenAction(id=3, items=(ActionItem(kind="approval"),), deadline=9, on_expiry="end_turn"),
    interrupting=False,
)


@pytest.mark.parametrize(
    ("said", "at", "holds"),
    [
        ("status == pending", moment(SAID), True),
        ("status != pending", moment(SAID), False),
        ("before.status == none", moment(SAID, ChatState(control=Control(), transcript=None)), True),
        ("before.status == none", moment(SAID), False),
        ("state == P0", moment(SAID), True),
        ("tokens > 1_000", moment(SAID, after=FULL), True),
        ("tokens > 1500", moment(SAID, after=FULL), False),
        ("tokens >= 1500 and tokens <= 1500", moment(SAID, after=FULL), True),
        ("tokens < 1500", moment(SAID, after=FULL), False),
        ("before.tokens", moment(SAID, after=FULL), False),
        ("queue == 1", moment(SAID, after=FULL), True),
        ("asks == approval", moment(SAID, after=FULL), True),
        ("asks == none", moment(SAID), True),
        ("steps", moment(SAID, after=FULL), True),
        ("interrupting", moment(SAID, after=FULL), False),
        ("interrupting == false", moment(SAID, after=FULL), True),
        ("compaction", moment(SAID), False),
        ("compaction == none", moment(SAID), True),
        ("model == none", moment(SAID), True),
        ("not_before > 0", moment(SAID), False),
        ("not not_before", moment(SAID), True),
        ("not not not_before", moment(SAID), False),
        ("event == message_sent", moment(SAID), True),
        ("trigger == send", moment(SAID), True),
        ("actor == worker", moment(SAID), True),
        ("text contains 'ORDER a-17'", moment(SAID), True),
        ("text contains order", moment(SAID), True),
        ("text contains refund", moment(SAID), False),
        ("rule == D1", moment(STARTED), True),
        ("rule", moment(SAID), False),
        ("action contains tools", moment(STARTED), True),
        ("kind == tools", moment(STARTED), True),
        ("tool == look_up", moment(STARTED, OPEN), True),
        ("tool contains look", moment(STARTED, OPEN), True),
        ("tool == send_mail", moment(STARTED, OPEN), False),
        ("tool != send_mail", moment(STARTED, OPEN), True),
        ("tool", moment(SAID, OPEN), False),
        ("tool == look_up", moment(RESULT, OPEN), True),
        ("reason == worker_lost", moment(RESULT, OPEN), True),
        ("reason == worker_lost", moment(Released(reason="shutdown", unknown=(CallKey("m1.0"),)), OPEN), True),
        ("failed == look_up", moment(BROKEN, OPEN), True),
        ("failed == look_up", moment(RESULT, OPEN), False),
        ("failed", moment(SAID, OPEN), False),
        ("reason == shutdown", moment(Released(reason="shutdown")), True),
        ("error == rate_limit", moment(FAILED), True),
        ("error", moment(SAID), False),
        ("open_calls == look_up", moment(SAID, after=OPEN), True),
        ("holder == w1", moment(SAID, after=state(status="running", holder=WorkerId("w1"))), True),
        # or binds less than and, and that less than not
        ("status == pending or rule and error", moment(SAID), True),
        ("(status == pending or rule) and error", moment(SAID), False),
        ("not rule and error", moment(SAID), False),
        ("not (rule and error)", moment(SAID), True),
    ],
)
def test_a_condition_holds_where_it_says(said: str, at: Moment, holds: bool) -> None:
    assert parse_condition(said)(at) is holds


@pytest.mark.parametrize(
    ("said", "place", "why"),
    [
        ("", 0, "expected a name"),
        ("   ", 3, "expected a name"),
        ("status ==", 9, "expected a value"),
        ("status == (", 10, "expected a value, not '('"),
        ("status == eror", 10, "status is never eror; did you mean error?"),
        ("status == 3", 10, "status is never 3"),
        ("reason == worker_los", 10, "reason is never worker_los; did you mean worker_lost?"),
        ("kind == tool", 8, "kind is never tool; did you mean tools?"),
        ("cause == max_step", 9, "cause is never max_step; did you mean max_steps?"),
        ("foo > 3", 0, f"there is no name 'foo'; there are {', '.join((*EVENT_NAMES, *STATE_NAMES))}"),
        ("tokns > 3", 0, "there is no name 'tokns'; did you mean tokens?"),
        ("before.rule == D1", 0, "rule is a name of the event: there is none before"),
        ("tokens > many", 9, "tokens is a number, which many is not"),
        ("tokens > none", 9, "none is neither more nor less than anything"),
        ("tokens == '3'", 10, "tokens is a number, which '3' is not"),
        ("status > error", 7, "status is a word, for which there is no >"),
        ("text == x", 5, "text is text, for which there is no =="),
        ("tokens contains 3", 7, "tokens is a number, for which there is no contains"),
        ("interrupting == yes", 16, "interrupting is true or false, which yes is not"),
        ("(status == error", 16, "a ) is missing"),
        ("(status == error and rule == D1 status", 32, "expected ), not 'status'"),
        ("status == error status", 16, "expected and, or, or the end, not 'status'"),
        ("status = error", 7, "'=' means nothing here; it is == for equal, != for unequal"),
        ("text contains 'open", 14, "the quotation mark is not closed"),
        ("and rule", 0, "expected a name, not 'and'"),
        ("rule and", 8, "expected a name"),
        ("true", 0, "expected a name, not 'true'"),
        ("not", 3, "expected a name"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(said: str, place: int, why: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(said)
    assert (caught.value.place, caught.value.why) == (place, why)
    assert str(caught.value) == f"condition {said!r}, character {place + 1}: {why}"


def test_conditions_say_whether_they_need_texts() -> None:
    assert parse_condition("status == error or text contains x").needs_content
    assert not parse_condition("status == error or tool contains x").needs_content


def test_text_that_was_not_read_is_not_found() -> None:
    stored = log_of([SAID]).events
    condition = parse_condition("text contains order")
    with_content, without = (next(decode_each(stored, content=content)) for content in (True, False))
    assert condition(Moment(state(), with_content, state()))
    assert not condition(Moment(state(), without, state()))


def test_a_condition_is_shown_as_it_was_typed() -> None:
    assert repr(parse_condition("rule == D1")) == "Condition('rule == D1')"


@pytest.mark.parametrize("name", [*EVENT_NAMES, *STATE_NAMES, *(f"before.{name}" for name in STATE_NAMES)])
def test_every_name_can_be_asked_of_any_moment(name: str) -> None:
    named = EVENT_NAMES.get(name) or STATE_NAMES[name.removeprefix("before.")]
    ask = f"{name} contains x" if named.kind is Kind.TEXT else f"{name} == none or {name} != none"
    for event in (SAID, STARTED, FAILED, RESULT):
        assert parse_condition(ask)(moment(event)) is (named.kind is not Kind.TEXT)


def test_no_name_is_of_the_event_and_of_the_state() -> None:
    assert not set(EVENT_NAMES) & set(STATE_NAMES)


_ATOMS = st.sampled_from(["status == pending", "tokens > 10", "rule", "not error", "before.state == P0", "tool == x"])
_CONDITIONS = st.recursive(
    _ATOMS,
    lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda each: f"({' '.join(each)})"),
    max_leaves=8,
)
_MOMENTS = st.sampled_from([moment(SAID), moment(STARTED, OPEN, FULL), moment(FAILED, FULL), moment(RESULT, OPEN)])


@given(one=_CONDITIONS, other=_CONDITIONS, at=_MOMENTS)
def test_conditions_combine_as_logic_does(one: str, other: str, at: Moment) -> None:
    first, second = parse_condition(one)(at), parse_condition(other)(at)
    assert parse_condition(f"{one} and {other}")(at) is parse_condition(f"({one}) and ({other})")(at)
    assert parse_condition(f"({one}) or ({other})")(at) is (first or second)
    assert parse_condition(f"not (({one}) and {other})")(at) is parse_condition(f"not ({one}) or not ({other})")(at)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_refused_at_a_place_in_it(said: str) -> None:
    try:
        parsed: Condition | ConditionError = parse_condition(said)
    except ConditionError as error:
        parsed = error
    assert isinstance(parsed, Condition) or 0 <= parsed.place <= len(said)


def test_the_page_names_all_that_can_be_asked() -> None:
    page = " ".join((ROOT / "docs" / "step.md").read_text().split())
    tables: list[Mapping[str, EventName] | Mapping[str, StateName]] = [EVENT_NAMES, STATE_NAMES]
    for name, named in ((name, table[name]) for table in tables for name in table):
        plain_field = named.about.startswith("`")
        assert (f"`{name}`" if plain_field else f"| `{name}` | {named.kind.value} | {named.about} |") in page
