"""Which logs cannot be run again, and why: a short list, and closed. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from events import vocabulary as v
from events.envelope import Recorded


class Unsupported(StrEnum):
    """Why a log cannot be run again; the value is what is said."""

    NO_BEGINNING = "it does not begin with the beginning of its chat"
    RECONCILED = "a state that must not be was repaired in it, and the engine never gets into one"


def unsupported(log: Sequence[Recorded]) -> Unsupported | None:
    """Return why a log cannot be run again; None where it can."""
    if not log or not isinstance(log[0].event, v.ChatCreated | v.ChatForked):
        return Unsupported.NO_BEGINNING
    if any(isinstance(each.event, v.Reconciled) for each in log):
        return Unsupported.RECONCILED
    return None
