"""Folding many events at once is folding one after the other, byte for byte, whatever the events say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.codec import decode, decode_each
from events.envelope import Recorded
from events.errors import TranscriptMissing
from events.logfile import read_log
from events.reducer import evolve, fold
from events.state import ChatState, initial_state
from tests.events.logs import Log
from tests.events.strategies import DRAFTS, EVENTS
from tests.state_bytes import state_bytes

LOGS = sorted((Path(__file__).parent.parent / "golden" / "v0.1" / "logs").glob("*.jsonl"))


def one_by_one(events: list[Recorded], state: ChatState) -> ChatState:
    for recorded in events:
        state = evolve(state, recorded)
    return state


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(EVENTS, DRAFTS), max_size=12), st.booleans())
def test_any_events(given_: list[tuple[object, object]], whole: bool) -> None:
    log = Log()
    for event, draft in given_:
        log.add(event, draft)  # type: ignore[arg-type]
    recorded = [decode(stored, blobs=log.blobs) for stored in log.events]
    assert list(decode_each(log.events, blobs=log.blobs)) == recorded
    assert list(decode_each(log.events, content=False)) == [decode(stored, content=False) for stored in log.events]
    start = initial_state()
    if not whole:
        start = ChatState(control=start.control, transcript=None)
    try:
        expected = one_by_one(recorded, start)
    except TranscriptMissing:
        with pytest.raises(TranscriptMissing):
            fold(recorded, start)
        return
    assert state_bytes(fold(recorded, start)) == state_bytes(expected)
    for cut in range(len(recorded)):
        assert state_bytes(fold(recorded[cut:], fold(recorded[:cut], start))) == state_bytes(expected)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_golden_logs(path: Path) -> None:
    log = read_log(path.read_bytes().splitlines(), path.name)
    recorded = list(decode_each(log.events, blobs=log.blobs))
    assert state_bytes(fold(recorded)) == state_bytes(one_by_one(recorded, initial_state()))
