"""A step of many calls costs what its calls cost, one by one: nothing is done again for all of them at each result."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Self

from chatstate import commands as c
from chatstate.audit import audit
from chatstate.classify import X
from events.reducer import fold
from tests.chatstate import build as b
from tests.chatstate.reach import reach, running_tools


class Counter:
    """Counts the bytecodes that Python runs meanwhile."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.count += event == "opcode"
        return self._trace


def costs(calls: int) -> dict[str, int]:
    """Run a step of so many calls, and return the bytecodes that it took to decide, to fold and to audit it."""
    chat = reach(X.R0, work=running_tools(*["rerun"] * calls))
    started = len(chat.log)
    before = chat.state
    with Counter() as deciding:
        for call in chat.calls:
            chat.do(b.result(chat, call.key))
        chat.do(c.CommitStep(fence=chat.fence()))
    with Counter() as folding:
        state = fold(chat.log[started:], before)
    with Counter() as auditing:
        findings = list(audit(chat.log))
    assert state == chat.state
    assert findings == []
    assert not chat.calls
    return {"decide": deciding.count, "fold": folding.count, "audit": auditing.count}


def test_the_results_of_a_step_cost_their_number() -> None:
    few, many = costs(100), costs(400)
    for what, count in few.items():
        # Four times the calls cost four times as much, and a little for finding each; all for each would be 16 times.
        assert many[what] < 6 * count, what
