"""A loop that is blocked is told of once, with the place where it stands; what is told holds no values."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Iterator

import pytest

from generation.watchdog import DEEPEST, LoopWatch, where


class Lines(logging.Handler):
    """Keeps what is logged, from whatever thread, and says when something came."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[logging.LogRecord] = []
        self.came = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self.came:
            self.found.append(record)
            self.came.notify_all()

    def of(self, event: str) -> list[logging.LogRecord]:
        return [record for record in self.found if event in record.getMessage()]

    def wait(self, event: str) -> None:
        """Block the thread until something was logged."""
        with self.came:
            assert self.came.wait_for(lambda: self.of(event), 20), event


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, logger = Lines(), logging.getLogger("generation.watchdog")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def block_here(lines: Lines, secret: str) -> str:
    lines.wait("event_loop_blocked")
    return secret


async def test_a_blocked_loop_is_told_of_with_the_function_that_blocks_it(lines: Lines) -> None:
    watch = LoopWatch(0.05)
    watch.start()
    try:
        block_here(lines, "a secret")
        await asyncio.to_thread(lines.wait, "event_loop_turns_again")
    finally:
        watch.stop()
    told = vars(lines.of("event_loop_blocked")[0])
    assert told["blocked_for"] > 0.05
    assert any(re.fullmatch(r".*tests/generation/test_watchdog.py:[0-9]+ block_here", place) for place in told["stack"])
    assert "a secret" not in str(told)


async def test_a_stall_is_told_of_once_and_the_next_one_again(lines: Lines) -> None:
    now = 0.0
    watch: LoopWatch

    def looks() -> Iterator[bool]:
        nonlocal now
        for seconds in (0.5, 1.5, 2.5, 3.5):
            now = seconds
            yield False
        watch.tick()
        yield False
        now = 5.0
        yield False
        yield True

    script = looks()
    watch = LoopWatch(1.0, lambda: now, lambda _ended, _seconds: next(script))
    watch._watch(asyncio.get_running_loop(), threading.get_ident())
    assert [(record.getMessage(), vars(record).get("blocked_for")) for record in lines.found] == [
        ("event_loop_blocked", 1.5),
        ("event_loop_turns_again", None),
        ("event_loop_blocked", 1.5),
    ]
    assert not watch.turning
    await asyncio.sleep(0)
    assert watch.turning, "each look asks the loop for a sign"


def test_where_a_thread_stands() -> None:
    def inner() -> list[str]:
        return where(threading.get_ident())

    stack = inner()
    assert [place.rpartition(" ")[2] for place in stack[-3:]] == ["test_where_a_thread_stands", "inner", "where"]
    assert len(stack) <= DEEPEST
    assert where(0) == [], "a thread that is gone stands nowhere"
