"""Two logs side by side: the same, until they part; and what tools did that no fork takes back."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatfold.engine import Engine
from chatfold.replaying.alignment import BESIDE, align, moves
from chatfold.replaying.effects import effects_after
from chatstate.table import ANY_TRIGGERS, TABLE
from events.envelope import Recorded
from tests.chatfold.replaying.pair import log, recorded


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


def forked(at: int) -> list[Recorded]:
    """A fork of the chat."""

    async def copy() -> list[Recorded]:
        async with Engine("memory://", worker=False) as engine:
            await engine.import_log(log("A-1"))
            await engine.fork("chat-A-1", at=at, chat_id="copy")
            return list(await engine.events("copy"))

    return asyncio.run(copy())


def test_a_fork_begins_with_what_its_origin_did() -> None:
    origin, fork = recorded(), forked(10)
    found = list(moves(fork, {"chat-A-1": origin}))
    assert [each.move for each in found] == [each.move for each in moves(origin) if each.version <= 10]
    assert {(each.origin, each.version) for each in found} == {("chat-A-1", len(fork))}


@pytest.mark.parametrize("origins", [{}, {"chat-A-1": recorded()[:9]}, {"other": recorded()}])
def test_a_fork_of_what_is_not_at_hand_begins_with_the_copying(origins: dict[str, list[Recorded]]) -> None:
    assert [each.move.trigger for each in moves(forked(10), origins)][:2] == ["fork", "import_messages"]


def test_a_fork_that_was_taken_over_as_its_origin_is_not_its_own_origin() -> None:
    fork = forked(2)
    assert [each.move.trigger for each in moves(fork, {"chat-A-1": fork})][:2] == ["fork", "import_messages"]


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
