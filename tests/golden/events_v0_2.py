"""What the vocabulary of release 0.2 has beside that of 0.1: what ``v0.2/events/*.json`` hold.

A name is the type of its event, with what is new in it behind a dot. Each event says what can be stored, not what a
chat may do.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from events import vocabulary as v
from events.records import AttemptReport
from tests.golden.pieces_v0_1 import ERROR, STEP, T

EVENTS: Final[dict[str, v.Event]] = {
    "retry_scheduled.unmetered": v.RetryScheduled(
        attempt=2,
        delay_us=1_000_000,
        not_before=T,
        error=ERROR,
        report=AttemptReport(step=replace(STEP, unmetered=True)),
    ),
}
