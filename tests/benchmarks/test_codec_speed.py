"""How many events of about 500 bytes a core encodes, verifies, decodes and folds in a second of CPU time.

To decode facts and fold them, which every load does with the tail of a log, has a bar, the only one that depends on the
machine; the other figures are printed, and held against each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from events.codec import decode, decode_each
from events.content import Content
from events.digest import verify_chain
from events.messages import Message, Step, Usage
from events.parts import TextPart
from events.reducer import fold
from events.vocabulary import StepCommitted
from tests.events.logs import TIME, Log

COUNT = 20_000
BAR = 400_000
"""Events a second that are decoded (their facts) and folded."""
STEP = Step(
    provider="anthropic", model="claude", finish_reason="stop", usage=Usage(input=900, output=80), ended_at=TIME
)
ANSWER = Message(role="assistant", parts=(TextPart(text=Content("word " * 45)),), step=STEP)


def rate(what: str, run: Callable[[], object]) -> float:
    """Run three times and return events per second of CPU time in the best."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    print(f"{what}: {COUNT / best:,.0f} events/s")
    return COUNT / best


@pytest.mark.bench
def test_speed_of_the_stored_form() -> None:
    def encode_all() -> Log:
        log = Log()
        for attempt in range(COUNT):
            log.add(StepCommitted(attempt=attempt, added=(ANSWER,)))
        return log

    encoded = rate("encode", encode_all)
    stored = encode_all().events
    size = len(stored[-1].facts) + len(stored[-1].content)
    print(f"bytes of an event: {len(stored[-1].facts)} of facts, {size} in all")
    assert 400 < size < 600
    facts = rate("decode facts", lambda: list(decode_each(stored, content=False)))
    folded = rate("decode facts and fold", lambda: fold(decode_each(stored, content=False)))
    decoded = list(decode_each(stored, content=False))
    rate("fold", lambda: fold(decoded))
    full = rate("decode facts and content", lambda: [decode(one) for one in stored])
    assert rate("verify", lambda: verify_chain(stored)) > encoded
    assert facts > full > encoded
    assert folded >= BAR
