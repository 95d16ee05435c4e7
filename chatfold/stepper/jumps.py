"""Where a jump leads: to the next or the last event before at which a condition holds. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from chatfold.replaying.conditions import Condition, Moment, parse_condition
from events.checkpoints import EVERY, Checkpoints
from events.reducer import evolve

Direction: TypeAlias = Literal[1, -1]

JUMPS: Final[Mapping[str, Condition]] = MappingProxyType(
    {
        "decision": parse_condition("rule"),
        "error": parse_condition("error or failed or (status == error and before.status != error)"),
        "tool": parse_condition("tool"),
    }
)
"""The jumps that have a key of their own."""


def to_trigger(name: str) -> Condition:
    """Return the condition of a transition.

    Raises:
        ConditionError: There is no transition of that name.
    """
    return parse_condition(f"trigger == {name}")


def to_text(text: str) -> Condition:
    """Return the condition that an event holds a text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return parse_condition(f'text contains "{escaped}"')


def find(log: Checkpoints, condition: Condition, start: int, direction: Direction = 1) -> int | None:
    """Return the nearest version beyond ``start`` at which a condition holds; None where there is none.

    Args:
        log: The log.
        condition: What must hold.
        start: The version from which to go; it is not looked at itself.
        direction: 1 for later versions, -1 for earlier ones.

    Raises:
        EventsError: An event on the way cannot be read.
    """
    if direction == 1:
        found = _holding(log, condition, start + 1, len(log))
        return next(found, None)
    last = start - 1
    while last > 0:
        first = max(1, last - EVERY + 1)
        if holding := list(_holding(log, condition, first, last)):
            return holding[-1]
        last = first - 1
    return None


def _holding(log: Checkpoints, condition: Condition, first: int, last: int) -> Iterator[int]:
    """Yield the versions from ``first`` to ``last`` at which a condition holds."""
    if first > last:
        return
    before = log.state(first - 1)
    for version in range(first, last + 1):
        recorded = log.recorded(version, content=False)
        after = evolve(before, recorded)
        seen = log.recorded(version) if condition.needs_content else recorded
        if condition(Moment(before, seen, after)):
            yield version
        before = after
