"""What a reader needs is said in one table, and it holds of every event: wherever in it the new thing stands.

Stand-ins for older releases (``tests.events.older``) say which of them can read a value.
"""

from __future__ import annotations

from typing import TypeAlias, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from chatstate.classify import X
from events import vocabulary as v
from events.content import Content
from events.effects import Effects
from events.ids import MessageId
from events.levels import (
    FIRST,
    GENERATION,
    LEVELS,
    RECONCILE,
    SINCE,
    Levels,
    default_of,
    level_of,
    level_of_all,
    readable_at,
    structs_in,
)
from events.messages import Message, Step
from events.parts import Part, SourcePart, TextPart
from events.records import Decision, Policy, ToolPolicy
from events.reducer import fold
from tests.chatstate import build as b
from tests.chatstate.reach import reach, running_tools
from tests.events.older import Release, may_be_new
from tests.events.strategies import EVENTS
from tests.golden.add import EVENTS as RELEASES
from tests.golden.test_golden import structs

New: TypeAlias = type[Struct] | tuple[type[Struct], str]

HELD = structs_in(*v.EVENT_TYPES.values())
NEW: list[New] = [new for cls in HELD for new in may_be_new(cls)]
"""All that a table can name: each event type, part kind and record, and each of their fields that may be left out."""

FOLDERS = {"v0.1": RECONCILE, "v0.2": GENERATION}
"""Folder of samples -> the highest level of what is in it."""

SAMPLES = {name: event for named in RELEASES.values() for name, event in named.items()}
READERS = (FIRST, RECONCILE, GENERATION)

TABLES = st.dictionaries(st.sampled_from(NEW), st.integers(2, 4), min_size=1, max_size=4)
TOMORROW = Levels({(Step, "response_id"): 3, SourcePart: 3, v.TitleChanged: 3, (Effects, "promoted"): 3, Decision: 4})
TEXT, SOURCE = TextPart(text=Content("t")), SourcePart(source_id="s", url=Content("u"))
ANSWER = Message(role="assistant", parts=(TEXT, SOURCE))


def called(new: New) -> str:
    return new.__name__ if isinstance(new, type) else f"{new[0].__name__}.{new[1]}"


def level_since(new: New) -> int:
    if not isinstance(new, tuple):
        return LEVELS.since(new)
    return max(LEVELS.since(new[0]), LEVELS.since(*new))  # a field is as new as its type at least


@pytest.mark.parametrize("key", SINCE, ids=called)
def test_what_the_table_names_exists_and_can_be_left_out(key: New) -> None:
    assert SINCE[key] > FIRST
    if isinstance(key, tuple):
        cls, name = key
        field = next(field for field in msgspec.structs.fields(cls) if field.name == name)
        assert not field.required
        assert cls.__struct_config__.omit_defaults, "a default must not be written"


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_no_sample_of_a_folder_has_is_in_the_table_for_later(folder: str) -> None:
    """A field or type that came later and has no line there would be written into chats whose readers refuse it."""
    found: set[New] = set()
    folders = [name for name in FOLDERS if name <= folder]
    for value in structs(tuple(event for name in folders for event in RELEASES[name].values())):
        cls = type(value)
        filled = [info for info in msgspec.structs.fields(cls) if getattr(value, info.name) != default_of(info)]
        found |= {cls, *((cls, info.name) for info in filled)}
    known = [new for new in NEW if level_since(new) <= FOLDERS[folder]]
    assert [called(new) for new in known if new not in found] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_the_level_of_a_sample_is_that_of_the_first_release_that_reads_it(name: str) -> None:
    """Samples have every field filled."""
    sample = SAMPLES[name]
    readers = [level for level in READERS if Release(LEVELS, level).reads(sample)]
    assert readers[0] == level_of(sample)
    if LEVELS.since(type(sample)) > FIRST:
        with pytest.raises(ValueError, match="is known from level"):
            readable_at(sample, FIRST)
        return
    without = readable_at(sample, FIRST)
    assert Release(LEVELS, FIRST).reads(without)
    assert (without is sample) == (level_of(sample) == FIRST)


@pytest.mark.parametrize("new", NEW, ids=called)
def test_whatever_is_new_is_found_in_a_sample_that_holds_it_and_in_no_other(new: New) -> None:
    levels = Levels({new: 2})
    holds: dict[bool, v.Event] = {}
    for sample in SAMPLES.values():
        holds.setdefault(levels.of(sample) > 1, sample)
    assert {found: Release(levels, 1).reads(sample) for found, sample in holds.items()} == {False: True, True: False}


@settings(max_examples=300, deadline=None)
@given(table=TABLES, event=EVENTS, level=st.integers(1, 4))
def test_any_table_and_event(table: dict[New, int], event: v.Event, level: int) -> None:
    levels = Levels(table)
    release = Release(levels, level)
    assert release.reads(event) == (levels.of(event) <= level)
    try:
        without = levels.readable(event, level)
    except ValueError:
        assert levels.of(event) > level  # what must be there is not known: more of that below
        return
    assert release.reads(without)
    assert levels.of(without) <= level
    assert (without is event) == (levels.of(event) <= level)


def test_what_cannot_be_read_is_left_out_where_it_stands() -> None:
    event = v.MessageSent(added=(ANSWER,), promoted=(MessageId("2.0"),))
    assert TOMORROW.of(event) == 3
    assert TOMORROW.readable(event, 3) is event
    assert TOMORROW.readable(event, 2) == v.MessageSent(added=(Message(role="assistant", parts=(TEXT,)),))


def test_a_field_is_new_in_all_types_that_inherit_it() -> None:
    promoted = (MessageId("2.0"),)
    assert TOMORROW.of(v.QueueReordered(promoted=promoted)) == TOMORROW.of(v.TurnResumed(promoted=promoted)) == 3
    assert TOMORROW.of(v.TurnResumed()) == FIRST


def test_what_must_be_there_and_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="TitleChanged is known from level 3 on, not at 2"):
        TOMORROW.readable(v.TitleChanged(), 2)
    started = v.AttemptStarted(attempt=1, kind="generate", decision=Decision(rule="D11", action="generate"))
    with pytest.raises(ValueError, match="AttemptStarted needs its decision, which is not known at level 3"):
        TOMORROW.readable(started, 3)


def test_what_stands_in_mappings_counts_too() -> None:
    class Shelf(Struct, frozen=True, omit_defaults=True, kw_only=True):
        parts: dict[str, Part] = {}
        more: dict[str, str] = {}

    levels = Levels({SourcePart: 3, (Shelf, "more"): 2})
    shelf = Shelf(parts={"a": TEXT, "b": SOURCE}, more={})
    assert (levels.of(shelf), levels.of(Shelf(more={"x": "y"})), levels.of(Shelf())) == (3, 2, 1)
    assert levels.readable(shelf, 2) == Shelf(parts={"a": TEXT})
    assert levels.readable(Shelf(more={"x": "y"}), 1) == Shelf()
    assert levels.readable(shelf, 3) is shelf


def test_a_policy_keeps_its_tools_where_they_cannot_be_asked() -> None:
    tools = (ToolPolicy(name="pay", reconcile=True), ToolPolicy(name="look"))
    policy = Policy(agent="a", revision="1", model=None, tools=tools)
    assert level_of(policy) == RECONCILE
    assert readable_at(policy, RECONCILE) is policy
    older = readable_at(policy, FIRST)
    assert older.tools == (ToolPolicy(name="pay"), tools[1])
    assert older.tools[1] is tools[1]


def test_control_needs_no_more_than_its_log() -> None:
    """It stands in the header, where older releases read it: what is derived from events is as new as they are."""
    chat = reach(X.R0, work=running_tools("asked", "report"))
    chat.do(b.acquire("w2", dead=True))
    states = [fold(chat.log[:length]) for length in range(len(chat.log) + 1)]
    needed = [level_of(state.control) for state in states]
    assert all(level <= level_of_all(chat.log[:length]) for length, level in enumerate(needed))
    assert any(call.possibly_done for call in chat.calls)
    assert needed[-1] == RECONCILE


def test_all_that_events_hold_is_looked_at() -> None:
    assert {*v.EVENT_TYPES.values(), *get_args(Part)} <= set(HELD)
