"""Where the time of a chat went, told from its log: each moment from its first to its last event has one use.

Owns the rule by which a moment is the model's, the tools', the queue's, the client's, a retry's, or nobody's: it
follows from the state that an event left behind, so that the parts add up to the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from events.control import Control
from events.envelope import Recorded
from events.replay import replay

Use: TypeAlias = Literal["model", "tools", "queue", "client", "retry", "engine", "rest"]
USES: Final[tuple[Use, ...]] = get_args(Use)

MEANING: Final = MappingProxyType(
    {
        "model": "model calls, compactions among them",
        "tools": "tools that workers run",
        "queue": "a turn is owed, and no worker has taken it",
        "client": "the client owes an answer",
        "retry": "waiting before a failed call is tried again",
        "engine": "a worker has it, and does neither of these",
        "rest": "no turn is under way",
    }
)
"""What each use is, for people."""

_KINDS: Final[Mapping[str, Use]] = MappingProxyType({"generate": "model", "compact": "model", "tools": "tools"})
_STATUSES: Final[Mapping[str, Use]] = MappingProxyType(
    {"pending": "queue", "requires_action": "client", "waiting": "rest", "error": "rest", "running": "engine"}
)


class Span(Struct, frozen=True, kw_only=True):
    """A stretch of time, from the event at ``version`` on, with one use.

    ``began_at`` and ``ended_at`` are microseconds UTC; ``note`` says what it was, in a word or two.
    """

    use: Use
    version: int
    began_at: int
    ended_at: int
    note: str = ""

    @property
    def length(self) -> int:
        """Microseconds."""
        return self.ended_at - self.began_at


def spans(log: Iterable[Recorded]) -> Iterator[Span]:
    """Yield the spans of a log in their order; they join without gaps. Those of no length are left out.

    Clocks may go back: an event that is older than the one before it ends a span of no length. Contents are not read.

    Raises:
        EventsError: An event cannot be read or applied.
    """
    before: Control | None = None
    began_at = 0
    for step in replay(log):
        at = step.recorded.envelope.recorded_at
        if before is not None:
            at = max(at, began_at)
            yield from _between(before, began_at, at)
        before, began_at = step.after.control, at


def _between(control: Control, began_at: int, ended_at: int) -> Iterator[Span]:
    """Yield what one state was spent with: a retry that is due and not taken waits in the queue from then on."""
    use = _use(control)
    until = ended_at
    if use == "retry" and control.not_before is not None:
        until = min(max(control.not_before, began_at), ended_at)
    stretches: tuple[tuple[Use, int, int], ...] = ((use, began_at, until), ("queue", until, ended_at))
    for each, start, end in stretches:
        if end > start:
            note = _note(control) if each == use else ""
            yield Span(use=each, version=control.version, began_at=start, ended_at=end, note=note)


def _use(control: Control) -> Use:
    if control.running is not None:
        return _KINDS.get(control.running.kind, "engine")
    if control.status == "pending" and control.not_before is not None:
        return "retry"
    return _STATUSES[control.status]


def _note(control: Control) -> str:
    if control.running is None:
        return ""
    if control.running.kind != "tools":
        return control.running.kind
    return ", ".join(dict.fromkeys(call.name for call in control.indexes.open_calls if call.runs))


def totals(found: Iterable[Span]) -> dict[Use, int]:
    """Return the microseconds of each use, those without any left out, in the order of ``USES``."""
    sums: dict[Use, int] = dict.fromkeys(USES, 0)
    for span in found:
        sums[span.use] += span.length
    return {use: length for use, length in sums.items() if length}


def joined(found: Sequence[Span], most: int) -> list[Span]:
    """Return spans of which neighbours of the same use are one, and, beyond ``most``, the shortest left out."""
    merged: list[Span] = []
    for span in found:
        last = merged[-1] if merged else None
        if last is not None and last.use == span.use and last.note == span.note and last.ended_at == span.began_at:
            merged[-1] = Span(
                use=span.use, version=last.version, began_at=last.began_at, ended_at=span.ended_at, note=span.note
            )
        else:
            merged.append(span)
    if len(merged) <= most:
        return merged
    longest = sorted(merged, key=lambda span: span.length, reverse=True)[:most]
    return sorted(longest, key=lambda span: (span.began_at, span.version))


def duration(microseconds: int) -> str:
    """Return a duration as people say it: ``340 ms``, ``12.5 s``, ``3 min 20 s``, ``5 h 2 min``, ``3 d 4 h``."""
    if not microseconds:
        return "0 s"
    for below, size, name in _SHORT:
        if microseconds < below:
            return f"{microseconds / size:.3g} {name}"
    seconds = round(microseconds / 1_000_000)
    size, name, part, small = next(unit for unit in _LONG if seconds >= unit[0])
    rest = seconds % size // part
    return f"{seconds // size} {name}" + (f" {rest} {small}" if rest else "")


_SHORT: Final = ((999_500, 1_000, "ms"), (59_950_000, 1_000_000, "s"))
"""Below how many microseconds a unit of so many is used; at the limit three digits would round up to the next unit."""

_LONG: Final = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
"""Seconds of a unit, and of the smaller one that the rest is told in."""
