"""Replay: walk a log one event at a time, or stop at a version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from msgspec import Struct

from events.envelope import Recorded
from events.errors import InvalidValue
from events.given import checked_kind, one_log
from events.reducer import evolve, fold
from events.state import ChatState, initial_state
from events.values import checked_whole


class ReplayStep(Struct, frozen=True):
    """One event with the states around it."""

    before: ChatState
    recorded: Recorded
    after: ChatState


def replay(events: Iterable[Recorded], state: ChatState | None = None) -> Iterator[ReplayStep]:
    """Yield each event with the states before and after it, from ``state`` or from before the first event.

    Raises:
        InvalidValue: What is given are no events, or not those of one log that follow ``state``.
    """
    before = initial_state() if state is None else checked_kind(state, ChatState, "$.state", "a state of the chat")
    yield from unchecked_replay(one_log(events, before.control.version), before)


def unchecked_replay(events: Iterable[Recorded], state: ChatState | None = None) -> Iterator[ReplayStep]:
    """Do what ``replay`` does, also where events are not those of one log: for who tells what is wrong with them."""
    before = initial_state() if state is None else state
    for recorded in events:
        after = evolve(before, recorded)
        yield ReplayStep(before, recorded, after)
        before = after


def state_at(events: Iterable[Recorded], version: int) -> ChatState:
    """Return the state after the event at ``version``; 0 is the state before the first event.

    Raises:
        InvalidValue: The events do not reach that version, or it is negative or no number; or they are no events, or
            not those of one log.
    """
    checked_whole(version, "$.version")
    state = fold(takewhile(lambda recorded: recorded.version <= version, one_log(events)))
    if state.control.version != version:
        raise InvalidValue(
            "$.version", f"there is no version {version}; the events given end at {state.control.version}"
        )
    return state
