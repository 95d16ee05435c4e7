"""Checkpoints: the state at any version is what a fold from the start gives, at the cost of a few events."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, overload
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.classify import X
from events import checkpoints
from events.checkpoints import EVERY, Checkpoints
from events.codec import decode, decode_each
from events.content import Content
from events.envelope import StoredEvent
from events.errors import InvalidValue, MalformedEvent
from events.messages import Message
from events.parts import TextPart
from events.reducer import fold
from events.state import ChatState
from tests.chatstate import build as b
from tests.chatstate.chat import store, trace
from tests.chatstate.reach import answered, reach


class Counted(Sequence[StoredEvent]):
    """A log that is read event by event, and counts how many were read."""

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self.events = events
        self.read = 0

    @overload
    def __getitem__(self, index: int) -> StoredEvent: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[StoredEvent]: ...

    def __getitem__(self, index: int | slice) -> Any:
        self.read += 1
        return self.events[index]

    def __len__(self) -> int:
        return len(self.events)


def talk(turns: int) -> list[StoredEvent]:
    """The log of a chat of several turns, with an edit of its second message now and then."""
    chat = reach(X.W, work=answered)
    for turn in range(turns):
        if turn % 7 == 3:
            chat.do(c.EditMessage(target=chat.state.messages[len(chat.messages) - 2].id, message=b.user("Hi")))
        else:
            chat.do(b.send(f"and {turn}"))
        chat.do(b.acquire())
        answered(chat)
        chat.do(b.finish(chat))
    return [store(recorded) for recorded in chat.log]


LOG: Final = talk(20)


def folded(version: int, events: Sequence[StoredEvent] = LOG) -> ChatState:
    return fold(decode_each(events[:version], content=False))


def same(one: ChatState, other: ChatState) -> bool:
    return trace(one) == trace(other)


@pytest.mark.parametrize("caught_up", [True, False])
@pytest.mark.parametrize("every", [1, 3, 8, 1000])
def test_each_version_is_what_a_fold_gives(every: int, caught_up: bool) -> None:
    states = Checkpoints(LOG, every=every)
    if caught_up:
        assert states.catch_up()
        assert states.caught_up == len(states) == len(LOG)
    versions = [*range(len(LOG) + 1), *reversed(range(len(LOG) + 1))]
    assert all(same(states.state(version), folded(version)) for version in versions)


@given(st.data())
def test_a_log_may_grow_while_it_is_looked_at(data: st.DataObject) -> None:
    grown: list[StoredEvent] = []
    states = Checkpoints(grown, every=data.draw(st.integers(1, 9)))
    while len(grown) < len(LOG):
        grown += LOG[len(grown) : len(grown) + data.draw(st.integers(1, 30))]
        states.catch_up(data.draw(st.none() | st.integers(1, 12)))
        version = data.draw(st.integers(0, len(grown)))
        assert same(states.state(version), folded(version))


def test_a_jump_reads_no_more_than_what_stands_between_two_checkpoints() -> None:
    counted = Counted(LOG)
    states = Checkpoints(counted, every=8)
    while not states.catch_up(5):
        assert states.caught_up % 5 == 0 or states.caught_up % 8 == 0
    assert counted.read == len(LOG)  # folded once, in however many calls
    for version in range(len(LOG) + 1):
        counted.read = 0
        states.state(version)
        assert counted.read <= 8
    counted.read = 0
    states.state(len(LOG))
    assert counted.read == 0


def test_an_edit_of_a_long_history_is_folded_once() -> None:
    edits = [stored.envelope.version for stored in LOG if stored.envelope.type == "message_edited"]
    long = [version for version in edits if folded(version - 1).control.indexes.messages > 8]
    assert long
    states = Checkpoints(LOG, every=8)
    states.catch_up()
    for version in long:
        with mock.patch.object(checkpoints, "fold", side_effect=AssertionError):
            states.state(version)


def test_contents_are_there_where_they_are_asked_for() -> None:
    bare, whole = Checkpoints(LOG, every=4), Checkpoints(LOG, every=4, content=True)
    for states in (bare, whole):
        states.catch_up()
    text = contents(bare.state(20).messages[0].message)
    assert not text.available
    assert contents(whole.state(20).messages[0].message).available
    assert same(whole.state(20), fold(decode_each(LOG[:20])))
    assert bare.recorded(1) == decode(LOG[0])
    assert bare.recorded(1, content=False) == decode(LOG[0], content=False)


def contents(message: Message) -> Content:
    part = message.parts[0]
    assert isinstance(part, TextPart)
    return part.text


@pytest.mark.parametrize("version", [-1, len(LOG) + 1, True, "3"])
def test_a_version_that_is_not_there(version: Any) -> None:
    with pytest.raises(InvalidValue, match="version"):
        Checkpoints(LOG).state(version)
    with pytest.raises(InvalidValue, match="version"):
        Checkpoints(LOG).recorded(version)
    with pytest.raises(InvalidValue, match="version 0"):
        Checkpoints(LOG).recorded(0)


def test_a_distance_that_is_none() -> None:
    with pytest.raises(InvalidValue, match="at least 1"):
        Checkpoints(LOG, every=0)


def test_what_stands_before_an_event_that_cannot_be_read_can_be_asked_for() -> None:
    damaged = [*LOG[:30], replace(LOG[30], facts=b"{"), *LOG[31:]]
    states = Checkpoints(damaged, every=8)
    for _ in range(2):
        with pytest.raises(MalformedEvent):
            states.catch_up()
        assert same(states.state(30), folded(30))
    with pytest.raises(MalformedEvent):
        states.state(31)


def test_an_empty_log() -> None:
    states = Checkpoints([])
    assert states.catch_up()
    assert states.state(0).control.version == 0
    assert EVERY > 1


def test_one_thread_folds_while_another_asks() -> None:
    states = Checkpoints(LOG, every=2)
    wrong: list[int] = []
    asked = threading.Event()

    def ask() -> None:
        while not asked.is_set():
            for version in range(0, len(LOG), 5):
                if states.state(version).control.version != version:
                    wrong.append(version)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        while not states.catch_up(1):
            pass
    finally:
        asked.set()
        asking.join()
    assert not wrong
    assert all(same(states.state(version), folded(version)) for version in range(len(LOG) + 1))
