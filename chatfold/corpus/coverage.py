"""What logs exercise: transitions, decision rules, event types, reasons, and fields that leave their default. Pure.

Owns what can be covered at all, so that what never was can be told. A mutant of code whose transition no log takes, or
whose field none fills, goes unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from chatstate.classify import X, classify
from chatstate.diagram import Edge
from chatstate.table import TABLE
from events.control import Control, Indexes
from events.envelope import Recorded
from events.messages import BoundaryKind
from events.reasons import Reason
from events.records import Decision, FinishCause
from events.replay import replay
from events.vocabulary import EVENT_TYPES
from generation.decide import RULES

Kind: TypeAlias = Literal["transition", "rule", "event", "reason", "cause", "boundary", "field"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

SAID: Final[Mapping[Kind, str]] = {
    "transition": "transitions of the machine",
    "rule": "decision rules",
    "event": "event types",
    "reason": "reasons of results without a tool",
    "cause": "causes by which turns finish",
    "boundary": "boundaries",
    "field": "fields that leave their default",
}
"""What each kind of coverage is, in words."""


class Coverage(Struct, frozen=True, kw_only=True):
    """How often each thing was seen, by kind and name."""

    seen: dict[Kind, dict[str, int]]

    def __add__(self, other: Coverage) -> Coverage:
        """Return both together."""
        return Coverage(
            seen={kind: dict(Counter(self.seen.get(kind, {})) + Counter(other.seen.get(kind, {}))) for kind in KINDS}
        )

    def of(self, kind: Kind) -> Mapping[str, int]:
        """Return what was seen of a kind."""
        return self.seen.get(kind, {})

    def missing(self, kind: Kind) -> list[str]:
        """Return what can be seen of a kind and was not, in the order of the tables."""
        seen = self.of(kind)
        return [name for name in possible()[kind] if name not in seen]


NOTHING: Final = Coverage(seen={})

_LATE: Final = "a turn is labelled while it is the last one, and has ended or waits for its user"
_NO_FLAGS: Final = "no behaviour has a flag yet"

UNWRITTEN: Final[Mapping[Kind, Mapping[str, str]]] = MappingProxyType(
    {
        "transition": {f"{x} set_turn_label {x}": _LATE for x in (X.P0, X.P1, X.R0, X.R1, X.I0, X.I1)},
        "event": {"reconciled": "it repairs what must not be"},
        "reason": {
            Reason.REPAIRED: "it comes with the event reconciled",
            Reason.EDIT: "no call is open before a user's message, which is all that an edit leaves",
        },
        "field": {
            "Acquired.report": "what a dead holder's attempt took is told by the one that follows it",
            "ChatCreated.flags": _NO_FLAGS,
            "ChatForked.flags": _NO_FLAGS,
            "Control.flags": _NO_FLAGS,
        },
    }
)
"""What the tables have and no engine writes, and why: it is not asked of a corpus."""


def coverage_of(log: Iterable[Recorded]) -> Coverage:
    """Return what a log exercises, given from its first event on; contents are not needed."""
    counters: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
    for step in replay(log):
        event = step.recorded.event
        before, after = classify(step.before.control), classify(step.after.control)
        counters["transition"][transition(before, event.trigger, after)] += 1
        counters["event"][step.recorded.envelope.type] += 1
        for kind, name in _facts_of(event):
            counters[kind][name] += 1
        for kind, name in (*_filled(step.after.control), *_filled(step.after.control.indexes)):
            counters[kind][name] = 1
    return Coverage(seen={kind: dict(counter) for kind, counter in counters.items()})


def transition(before: str, trigger: str, after: str) -> str:
    """Return the name of a transition."""
    return f"{before} {trigger} {after}"


def parted(name: str) -> Edge:
    """Return the parts of a transition's name."""
    return Edge(*name.split(" "))


@cache
def possible() -> Mapping[Kind, tuple[str, ...]]:
    """Return all that can be seen, by kind. What leads from Invalid is left out, too: a repair writes it, no engine."""
    transitions = (
        transition(x, trigger, outcome)
        for x, cells in TABLE.items()
        for trigger, cell in cells.items()
        if trigger != "reconcile"
        for outcome in cell.outcomes
    )
    known: dict[Kind, Iterable[str]] = {
        "transition": dict.fromkeys(transitions),
        "rule": (rule.id for rule in RULES),
        "event": EVENT_TYPES,
        "reason": (reason.value for reason in Reason),
        "cause": get_args(FinishCause),
        "boundary": get_args(BoundaryKind),
        "field": sorted({*_fields_of(Control), *_fields_of(Indexes), *_fields_of_events()}),
    }
    return {kind: tuple(name for name in known[kind] if name not in UNWRITTEN.get(kind, ())) for kind in KINDS}


def _facts_of(value: object) -> Iterator[tuple[Kind, str]]:
    """Yield what a struct of an event shows, and all that is in it."""
    if isinstance(value, Struct):
        yield from _filled(value)
        yield from _named(value)
        for name in value.__struct_fields__:
            yield from _facts_of(getattr(value, name))
    elif isinstance(value, tuple):
        for each in value:
            yield from _facts_of(each)


def _named(value: Struct) -> Iterator[tuple[Kind, str]]:
    if isinstance(value, Decision):
        yield "rule", value.rule
    if (reason := getattr(value, "reason", None)) is not None and isinstance(reason, str) and reason in _REASONS:
        yield "reason", reason
    if getattr(value, "unknown", ()):
        yield "reason", Reason.WORKER_LOST  # the fold gives their results
    if isinstance(cause := getattr(value, "cause", None), str):
        yield "cause", cause
    if isinstance(boundary := getattr(value, "boundary", None), str) and boundary in get_args(BoundaryKind):
        yield "boundary", boundary


_REASONS: Final = frozenset(Reason)


def _filled(value: Struct) -> Iterator[tuple[Kind, str]]:
    """Yield the fields of a struct that have another value than their default; such as need one are not looked at."""
    kind = type(value)
    for name, default in _defaults(kind):
        if getattr(value, name) != default:
            yield "field", _field(kind, name)


@cache
def _defaults(kind: type[Struct]) -> tuple[tuple[str, Any], ...]:
    found: list[tuple[str, Any]] = []
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT:
            found.append((field.name, field.default))
        elif field.default_factory is not msgspec.NODEFAULT:
            found.append((field.name, field.default_factory()))
    return tuple(found)


def _fields_of(kind: type[Struct]) -> Iterator[str]:
    yield from (_field(kind, name) for name, _ in _defaults(kind))


@cache
def _field(kind: type[Struct], name: str) -> str:
    """Return what a field is called: by the struct that has it first, since many events share the same effects."""
    structs = (each for each in reversed(kind.__mro__) if issubclass(each, Struct) and each is not Struct)
    owner = next(each for each in structs if name in each.__struct_fields__)
    return f"{owner.__name__}.{name}"


def _fields_of_events() -> Iterator[str]:
    found: set[type[Struct]] = set()
    for name, event in EVENT_TYPES.items():
        if name not in UNWRITTEN["event"]:
            _reach(event, found)
    for kind in found:
        yield from _fields_of(kind)


def _reach(kind: Any, found: set[type[Struct]]) -> None:
    """Add all structs that a value of a type can hold."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        if kind in found:
            return
        found.add(kind)
        for field in msgspec.structs.fields(kind):
            _reach(field.type, found)
        return
    for each in get_args(kind):
        _reach(each, found)
