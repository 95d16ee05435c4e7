"""What a tool that can be asked whether a call happened may say, and how that is read. Pure.

A worker may die while a call runs. Nobody knows then what the call did; but the system that it went to often does.
When the call is asked about, and what follows, is ``generation.tools.execute``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from generation.tools.output import Answer, answer_of


@dataclass(frozen=True, slots=True)
class Happened:
    """The call happened. ``output`` is what it gave, or would have: see ``ToolOutput`` for what it may be."""

    output: Any


class Verdict(Enum):
    """What can be said of a call of which there is no result to record."""

    NOT_HAPPENED = "not_happened"
    NOT_KNOWN = "not_known"


NOT_HAPPENED: Final = Verdict.NOT_HAPPENED
"""The call did nothing, and will do nothing any more: it is run now."""

NOT_KNOWN: Final = Verdict.NOT_KNOWN
"""It cannot be told: the model is told that the outcome is unknown."""

Outcome: TypeAlias = Answer | Verdict


def verdict_of(value: Any, budget: int) -> Outcome:
    """Return what a ``reconcile`` function said: the call's answer, or a verdict without one.

    Args:
        value: What the function returned; anything but its three answers counts as ``NOT_KNOWN``.
        budget: Bytes that the output may take.
    """
    if isinstance(value, Happened):
        return answer_of(value.output, budget)
    return value if isinstance(value, Verdict) else NOT_KNOWN
