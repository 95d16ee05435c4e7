"""A loop that is blocked is told of once, with the place where it stands; what is told holds no values."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from generation import watchdog
from generation.watchdog import DEEPEST, LoopWatch, ProcessorWaits, where


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
    watch = LoopWatch(1.0, lambda: now, lambda _ended, _seconds: next(script), lambda: 0.0)
    watch._watch(asyncio.get_running_loop(), threading.get_ident())
    assert [(record.getMessage(), vars(record).get("blocked_for")) for record in lines.found] == [
        ("event_loop_blocked", 1.5),
        ("event_loop_turns_again", None),
        ("event_loop_blocked", 1.5),
    ]
    assert not watch.turning
    await asyncio.sleep(0)
    assert watch.turning, "each look asks the loop for a sign"


async def test_a_loop_whose_process_gets_no_processor_is_not_blocked_by_a_function(lines: Lines) -> None:
    now = waited = 0.0

    def looks() -> Iterator[bool]:
        nonlocal now, waited
        for seconds, waits in ((0.5, 0.4), (1.5, 1.2), (2.5, 2.2), (3.5, 2.4), (4.5, 2.4)):
            now, waited = seconds, waits
            yield False
        watch.tick()
        yield False
        now, waited = 6.0, 3.0  # what was waited before the tick does not count
        yield False
        yield True

    script = looks()
    watch = LoopWatch(1.0, lambda: now, lambda _ended, _seconds: next(script), lambda: waited)
    watch._watch(asyncio.get_running_loop(), threading.get_ident())
    assert [(record.getMessage(), vars(record).get("blocked_for")) for record in lines.found] == [
        ("event_loop_starved", 1.5),
        ("event_loop_blocked", 3.5),
        ("event_loop_turns_again", None),
        ("event_loop_starved", 1.5),
    ]


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not tell of it")
def test_what_threads_wait_for_a_processor_is_told() -> None:
    """Both are bound to one processor: what one has, the other waits for."""
    waits, own = ProcessorWaits(), os.sched_getaffinity(0)
    before = waits()
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        one = {min(own)}
        os.sched_setaffinity(busy.pid, one)
        os.sched_setaffinity(0, one)
        began = time.monotonic()
        while waits() - before < 0.1:
            assert time.monotonic() - began < 30
    finally:
        os.sched_setaffinity(0, own)
        busy.kill()
        busy.wait()
    ended = waits()
    thread = threading.Thread(target=time.sleep, args=(0,))
    thread.start()
    thread.join()
    assert waits() >= ended, "threads that have ended take nothing back"


def test_where_a_thread_stands() -> None:
    def inner() -> list[str]:
        return where(threading.get_ident())

    stack = inner()
    assert [place.rpartition(" ")[2] for place in stack[-3:]] == ["test_where_a_thread_stands", "inner", "where"]
    assert len(stack) <= DEEPEST
    assert where(0) == [], "a thread that is gone stands nowhere"


def test_what_cannot_be_read_for_a_while_was_not_waited_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files have run out, what a thread waited in all its life is not of the last second."""
    tasks, hidden = tmp_path / "task", tmp_path / "hidden"
    told = tasks / "7" / "schedstat"
    told.parent.mkdir(parents=True)
    told.write_text("5000000000 3000000000 12\n", encoding="utf-8")
    monkeypatch.setattr(watchdog, "_TASKS", tasks)
    waits = ProcessorWaits()
    before = waits()
    for lost in (told, tasks):
        lost.rename(hidden)
        assert waits() == before
        hidden.rename(lost)
        assert waits() == before
    told.write_text("5000000000 4500000000 13\n", encoding="utf-8")
    assert waits() == before + 1.5
