"""Two logs side by side: the same, until they part; and what tools did that no fork takes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatfold.replaying.alignment import BESIDE, align, moves
from chatfold.replaying.effects import effects_after
from chatstate.table import ANY_TRIGGERS, TABLE
from tests.chatfold.replaying.pair import recorded


def test_logs_of_the_same_course_are_the_same_whatever_their_texts_ids_and_times() -> None:
    found = align(moves(recorded("A-1")), moves(recorded("B-2")))
    assert not found.parts
    assert found.then == ((), ())
    assert found.same == len([each for each in recorded() if each.event.trigger not in BESIDE])


def test_logs_part_where_one_of_their_tools_failed() -> None:
    found = align(moves(recorded("A-1")), moves(recorded("gone")), context=2)
    assert found.parts
    one, other = found.then
    assert [each.recorded.version for each in one] == [7, 8]
    assert str(one[0].move) == "R0 record_tool_result R0 (look_up)"
    assert str(other[0].move) == "R0 record_tool_result R0 (look_up): error"
    assert found.last is not None
    assert str(found.last[0].move) == "R0 start_attempt R0, D1 run_tools (look_up)"


@given(st.integers(0, 17), st.integers(0, 17), st.integers(1, 4))
def test_logs_that_begin_alike_part_where_the_shorter_ends(one: int, other: int, context: int) -> None:
    whole = list(moves(recorded()))
    left, right = whole[:one], whole[:other]
    found, mirrored = align(left, right, context=context), align(right, left, context=context)
    assert found.same == mirrored.same == min(len(left), len(right))
    assert found.then == mirrored.then[::-1]
    assert found.parts == (len(left) != len(right))
    longer = max(left, right, key=len)
    assert max(found.then, key=len) == tuple(longer[found.same : found.same + context])


def test_what_is_beside_a_chat_s_course_are_triggers_that_there_are() -> None:
    known = {trigger for cells in TABLE.values() for trigger in cells} | set(ANY_TRIGGERS)
    assert known >= BESIDE


def test_effects_are_told_once_each_by_who_ran_them() -> None:
    log = recorded()
    told = [(each.tool, each.runner, each.repeatable) for each in effects_after(log, 0)]
    assert told == [("look_up", "local", True), ("pay", "local", False), ("where", "client", False)]
    paid = next(each.version for each in effects_after(log, 0) if each.tool == "pay")
    assert [each.tool for each in effects_after(log, paid)] == ["where"]
    assert [each.tool for each in effects_after(log, paid - 1)] == ["pay", "where"]
    assert list(effects_after(log, len(log))) == []
