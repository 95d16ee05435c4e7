"""Replay: each event with the states around it, the state at a version, and folds whose cost is the log's length."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from time import process_time

from chatstate.classify import X
from events import vocabulary as v
from events.control import encode_control
from events.envelope import Envelope, Recorded, Status
from events.ids import CommandId, WorkerId
from events.records import Actor
from events.reducer import fold
from events.replay import replay, state_at
from events.state import initial_state
from tests.chatstate import build as b
from tests.chatstate.chat import trace
from tests.chatstate.reach import answered, reach


def test_it_yields_each_event_between_the_states_around_it() -> None:
    chat = reach(X.A1)
    steps = list(replay(chat.log))
    assert [step.recorded for step in steps] == chat.log
    assert trace(steps[0].before) == trace(initial_state())
    for before, after in pairwise(steps):
        assert before.after is after.before
    assert trace(steps[-1].after) == trace(chat.state)


def test_it_goes_on_from_a_state() -> None:
    chat = reach(X.W)
    half = fold(chat.log[:3])
    steps = list(replay(chat.log[3:], half))
    assert steps[0].before is half
    assert trace(steps[-1].after) == trace(chat.state)


def test_the_state_at_a_version_is_the_fold_up_to_it() -> None:
    chat = reach(X.W)
    for version in range(len(chat.log) + 1):
        assert trace(state_at(chat.log, version)) == trace(fold(chat.log[:version]))
    assert state_at(chat.log, 0).control.version == 0


def test_it_is_lazy() -> None:
    def endless() -> Iterator[Recorded]:
        yield from reach(X.P0).log
        raise AssertionError

    assert next(replay(endless())).after.control.version == 1
    assert state_at(reach(X.W).log, 2).control.version == 2


def test_the_same_log_gives_the_same_bytes() -> None:
    chat = reach(X.R0, work=answered)
    assert {encode_control(fold(chat.log).control) for _ in range(3)} == {encode_control(chat.control)}


def long_log(events: int) -> Iterator[Recorded]:
    """Turns of five events: a message, a worker, an attempt, an answer, the end."""
    turn: list[tuple[v.Event, Status]] = [
        (v.MessageSent(added=(b.user(),)), "pending"),
        (v.Acquired(worker=WorkerId("w"), epoch=1, release="0.1.0"), "running"),
        (v.AttemptStarted(attempt=1, kind="generate", decision=b.DECISION), "running"),
        (v.StepCommitted(attempt=1, added=(b.answer("provider"),)), "running"),
        (v.TurnFinished(cause="complete", decision=b.DECISION), "waiting"),
    ]
    actor, command = Actor(kind="system"), CommandId("c")
    for version in range(1, events + 1):
        event, dest = turn[(version - 1) % len(turn)]
        envelope = Envelope(
            version=version,
            type=event.type,
            schema=1,
            recorded_at=version,
            actor=actor,
            source="waiting",
            dest=dest,
            command=command,
            index=0,
        )
        yield Recorded(envelope=envelope, event=event)


@contextmanager
def without_collector() -> Iterator[None]:
    """Measure the fold, not the garbage collector, whose passes over all that a test session holds fall at random."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_folding_is_linear_in_the_events() -> None:
    def seconds(events: int) -> float:
        log = list(long_log(events))
        with without_collector():
            started = process_time()
            state = fold(log)
            spent = process_time() - started
        assert (state.control.version, len(state.need_transcript("a test").messages)) == (events, events // 5 * 2)
        return spent

    seconds(1000)
    short, long = min(seconds(20_000) for _ in range(3)), min(seconds(100_000) for _ in range(2))
    print(f"20,000 events in {short:.2f} s, 100,000 in {long:.2f} s")
    assert long < short * 5 * 3


def test_stepping_is_linear_too_since_states_share_their_messages() -> None:
    def seconds(events: int) -> float:
        log = list(long_log(events))
        with without_collector():
            started = process_time()
            kept = [step.after for step in replay(log)]
            spent = process_time() - started
        assert len(kept[4].need_transcript("a test").messages) == 2
        return spent

    seconds(1000)
    short, long = min(seconds(4_000) for _ in range(3)), min(seconds(20_000) for _ in range(2))
    assert long < short * 5 * 3
