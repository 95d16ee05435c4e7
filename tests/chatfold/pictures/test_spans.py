"""Where the time went: every moment has one use, and the parts add up to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chatfold.pictures.gantt import timeline_svg
from chatfold.pictures.spans import MEANING, USES, Span, duration, joined, spans, totals
from events.content import Content
from events.envelope import Recorded
from events.records import ErrorInfo
from events.vocabulary import RetryScheduled
from tests.chatfold.replaying.pair import recorded

SECOND = 1_000_000


def timed(log: Sequence[Recorded], gaps: Sequence[int]) -> list[Recorded]:
    """The log with other times: so many microseconds before each event."""
    at, found = 0, []
    for each, gap in zip(log, gaps, strict=True):
        at += gap
        found.append(replace(each, envelope=replace(each.envelope, recorded_at=at)))
    return found


def test_the_uses_of_a_chat() -> None:
    found = list(spans(timed(recorded(), [SECOND] * 21)))
    assert [(span.use, span.version, span.note) for span in joined(found, 99)] == [
        ("queue", 1, ""),
        ("engine", 2, ""),
        ("model", 4, "generate"),
        ("engine", 5, ""),
        ("tools", 6, "look_up"),
        ("tools", 7, ""),
        ("engine", 8, ""),
        ("model", 9, "generate"),
        ("engine", 10, ""),
        ("tools", 11, "pay"),
        ("tools", 12, ""),
        ("engine", 13, ""),
        ("model", 14, "generate"),
        ("engine", 15, ""),
        ("client", 16, ""),
        ("queue", 17, ""),
        ("engine", 18, ""),
        ("model", 19, "generate"),
        ("engine", 20, ""),
    ]
    assert totals(found) == {
        "model": 4 * SECOND, "tools": 4 * SECOND, "queue": 2 * SECOND, "client": SECOND, "engine": 9 * SECOND,
    }  # fmt: skip


@given(st.lists(st.integers(-5 * SECOND, 50 * SECOND), min_size=21, max_size=21))
def test_spans_join_without_gaps_and_add_up_whatever_the_clock_did(gaps: list[int]) -> None:
    log = timed(recorded(), gaps)
    found = list(spans(log))
    assert all(span.length > 0 for span in found)
    assert all(one.ended_at == other.began_at for one, other in pairwise(found))
    first, latest = log[0].envelope.recorded_at, max(each.envelope.recorded_at for each in log)
    assert sum(totals(found).values()) == latest - first
    assert timeline_svg(found).startswith("<svg ")


@pytest.mark.parametrize(
    ("due", "uses"),
    [
        (3, [("retry", 3), ("queue", 1)]),  # taken a second after it was due
        (4, [("retry", 4)]),
        (9, [("retry", 4)]),  # taken before it was due, as by a user who resumed it
        (-1, [("queue", 4)]),
    ],
)
def test_a_retry_waits_until_it_is_due_and_then_in_the_queue(due: int, uses: list[tuple[str, int]]) -> None:
    log = timed(recorded()[:6], [SECOND, 0, 0, 0, 0, 4 * SECOND])
    error = ErrorInfo(kind="rate_limit", message=Content("busy"), retryable=True)
    event = RetryScheduled(attempt=1, delay_us=1, not_before=(1 + due) * SECOND, error=error)
    at = replace(log[4].envelope, type=event.type, dest="pending")
    found = list(spans([*log[:4], Recorded(at, event), replace(log[5], event=log[1].event)]))
    assert [(span.use, span.length // SECOND) for span in found] == uses


def test_neighbours_of_one_use_are_one_and_of_many_the_longest_are_kept() -> None:
    found = [Span(use="model", version=v, began_at=v, ended_at=v + 1) for v in range(3)]
    assert joined(found, 9) == [Span(use="model", version=0, began_at=0, ended_at=3)]
    apart = [Span(use="model", version=v, began_at=10 * v, ended_at=11 * v) for v in range(1, 5)]
    assert joined(apart, 2) == apart[2:]


def test_each_use_is_explained() -> None:
    assert tuple(MEANING) == USES


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [
        (0, "0 s"), (340, "0.34 ms"), (340_000, "340 ms"), (12_500_000, "12.5 s"), (60_000_000, "1 min"),
        (59_999_000, "1 min"), (999_499, "999 ms"), (999_999, "1 s"), (59_949_999, "59.9 s"),
            (200_000_000, "3 min 20 s"), (18_120_000_000, "5 h 2 min"),
        (3_599_700_000, "1 h"), (273_600_000_000, "3 d 4 h"),
    ],
)  # fmt: skip
def test_durations(microseconds: int, said: str) -> None:
    assert duration(microseconds) == said
