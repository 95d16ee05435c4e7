"""What the vocabulary of release 0.2 has beside that of 0.1: what ``v0.2/events/*.json`` hold.

A name is the type of its event, with what is new in it behind a dot. Each event says what can be stored, not what a
chat may do.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from events import vocabulary as v
from events.records import AttemptReport
from tests.golden.pieces_v0_1 import ERROR, MODEL, POLICY, STEP, T

POLICY_OF_OPTIONS: Final = replace(POLICY, model=replace(MODEL, effort_max="high", options="o" * 22))

EVENTS: Final[dict[str, v.Event]] = {
    "policy_recorded.efforts_and_options": v.PolicyRecorded(digest="e" * 64, policy=POLICY_OF_OPTIONS),
    "retry_scheduled.unmetered": v.RetryScheduled(
        attempt=2,
        delay_us=1_000_000,
        not_before=T,
        error=ERROR,
        report=AttemptReport(step=replace(STEP, unmetered=True)),
    ),
}
