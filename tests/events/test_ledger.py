"""Calls that died with their worker: counted, with a cost that is not known, unless something of them was told."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.classify import X
from events.ledger import ledger_of
from events.records import AttemptReport
from tests.chatstate import build as b
from tests.chatstate.chat import Chat
from tests.chatstate.reach import compacting, generating, reach, running_tools

TOLD = AttemptReport(step=b.STEP)


def lose(chat: Chat) -> None:
    chat.do(b.acquire("w2", dead=True))


def start_again(chat: Chat, **told: Any) -> None:
    chat.do(replace(b.start(chat), **told))


CASES: dict[str, tuple[Callable[[], Chat], list[Callable[[Chat], object]], tuple[int, int]]] = {
    "started once more": (lambda: reach(X.R0, work=generating), [lose, start_again], (1, 1)),
    "a compaction": (lambda: reach(X.R0, work=compacting), [lose, start_again], (1, 1)),
    "told by the next start": (
        lambda: reach(X.R0, work=generating),
        [lose, lambda chat: start_again(chat, cut=TOLD)],
        (1, 0),
    ),
    "lost twice": (
        lambda: reach(X.R0, work=generating),
        [lose, start_again, lambda chat: chat.do(b.acquire("w3", dead=True)), start_again],
        (2, 2),
    ),
    "given up after it": (lambda: reach(X.R0, work=generating), [lose, lambda chat: chat.do(b.fail(chat))], (1, 1)),
    "let go after it": (lambda: reach(X.R0, work=generating), [lose, lambda chat: chat.do(b.release(chat))], (1, 1)),
    "not yet known": (lambda: reach(X.R0, work=generating), [lose], (0, 0)),
    "its runner died": (
        lambda: reach(X.R0, work=generating),
        [lambda chat: chat.do(c.Release(fence=chat.fence(), reason="fault"))],
        (1, 1),
    ),
    "a worker that lives and is silent": (
        lambda: reach(X.R0, work=generating),
        [lambda chat: chat.do(b.release(chat))],
        (0, 0),
    ),
    "tried again": (lambda: reach(X.R0, work=generating), [lambda chat: chat.do(b.retry(chat))], (0, 0)),
    "interrupted where its worker is dead": (
        lambda: reach(X.R0, work=generating),
        [lambda chat: chat.do(c.Interrupt(lease_dead=True))],
        (1, 1),
    ),
    "interrupted, then dead": (
        lambda: reach(X.R0, work=generating),
        [lambda chat: chat.do(c.Interrupt()), lose, lambda chat: chat.do(b.finish_interruption(chat))],
        (1, 1),
    ),
    "interrupted, and silent": (
        lambda: reach(X.R0, work=generating),
        [lambda chat: chat.do(c.Interrupt()), lambda chat: chat.do(b.finish_interruption(chat))],
        (0, 0),
    ),
    "tools are no model calls": (lambda: reach(X.R0, work=running_tools("rerun")), [lose], (1, 0)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_died_with_its_worker(case: str) -> None:
    begin, steps, (calls, unmetered) = CASES[case]
    chat = begin()
    for step in steps:
        step(chat)
    ledger = ledger_of(chat.log)
    assert (ledger.calls, ledger.unmetered, ledger.unpriced) == (calls, unmetered, unmetered)
