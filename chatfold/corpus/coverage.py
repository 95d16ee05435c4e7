"""What logs exercise: transitions, rules, events, ends of attempts, errors, part kinds, words and fields. Pure.

Owns what can be covered at all, so that what never was can be told. A mutant of code whose transition no log takes, or
whose field none fills, goes unseen. What no engine writes, and why, is ``chatfold.corpus.unwritten``'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from chatfold.corpus.structs import defaults_of, filled
from chatfold.corpus.unwritten import KINDS, UNWRITTEN, Kind
from chatstate.classify import classify
from chatstate.diagram import Edge
from chatstate.table import TABLE
from events.control import Control, Indexes
from events.envelope import Recorded
from events.levels import structs_in
from events.parts import PARTS
from events.reasons import Reason
from events.records import AttemptKind, Decision, ErrorInfo
from events.replay import ReplayStep, replay
from events.vocabulary import EVENT_TYPES
from generation.decide import RULES
from generation.errors import RECORDED_KINDS


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


def coverage_of(log: Iterable[Recorded]) -> Coverage:
    """Return what a log exercises, given from its first event on; contents are not needed."""
    counters: dict[Kind, Counter[str]] = {kind: Counter() for kind in KINDS}
    for step in replay(log):
        event = step.recorded.event
        before, after = classify(step.before.control), classify(step.after.control)
        counters["transition"][transition(before, event.trigger, after)] += 1
        counters["event"][step.recorded.envelope.type] += 1
        if (ended := _ended(step)) is not None:
            counters["end"][_end(ended, event.type)] += 1
        for kind, name in _facts_of(event):
            counters[kind][name] += 1
        for kind, name in (*_filled(step.after.control), *_filled(step.after.control.indexes)):
            counters[kind][name] = 1
    return Coverage(seen={kind: dict(counter) for kind, counter in counters.items()})


def _ended(step: ReplayStep) -> AttemptKind | None:
    """Return of which kind the attempt is that an event ended; the start of the next one is no end of its own."""
    before, after = step.before.control.running, step.after.control.running
    return before.kind if before is not None and after is None else None


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
    structs = _structs()
    known: dict[Kind, Iterable[str]] = {
        "transition": dict.fromkeys(transitions),
        "rule": (rule.id for rule in RULES),
        "event": EVENT_TYPES,
        "end": (_end(kind, event) for event, kinds in ENDS.items() for kind in kinds),
        "error": RECORDED_KINDS,
        "part": map(_tag, PARTS),
        "reason": (reason.value for reason in Reason),
        "value": sorted(_value(kind, name, word) for kind in structs for name, words in _words(kind) for word in words),
        "field": sorted({_field(kind, name) for kind in (Control, Indexes, *structs) for name in defaults_of(kind)}),
    }
    return {kind: tuple(name for name in known[kind] if name not in UNWRITTEN.get(kind, ())) for kind in KINDS}


_KINDS: Final[tuple[AttemptKind, ...]] = get_args(AttemptKind)
ENDS: Final[Mapping[str, tuple[AttemptKind, ...]]] = MappingProxyType(
    {
        "step_committed": ("generate", "tools"),
        "compaction_committed": ("compact",),
        "context_persisted": ("context",),
        "retry_scheduled": ("generate", "compact", "context"),
        "turn_finished": ("generate",),
        **dict.fromkeys(
            (
                "turn_failed",
                "interruption_finished",
                "released",
                "acquired",
                "turn_interrupted",
                "message_sent_interrupting",
                "queued_message_promoted",
                "message_edited",
            ),
            _KINDS,
        ),
    }
)
"""Event types that end the attempt under way -> which kinds of it."""


def _tag(part: Any) -> str:
    return str(part.__struct_config__.tag)


def _end(kind: str, event: str) -> str:
    return f"{kind} {event}"


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
    kind = type(value)
    if isinstance(value, Decision):
        yield "rule", value.rule
    if isinstance(value, ErrorInfo):
        yield "error", value.kind
    if isinstance(value, PARTS):
        yield "part", _tag(kind)
    if (reason := getattr(value, "reason", None)) is not None and isinstance(reason, str) and reason in _REASONS:
        yield "reason", reason
    if getattr(value, "unknown", ()):
        yield "reason", Reason.WORKER_LOST  # the fold gives their results
    for name, words in _words(kind):
        said = getattr(value, name)
        if isinstance(said, str) and said in words:
            yield "value", _value(kind, name, said)


_REASONS: Final = frozenset(Reason)


def _filled(value: Struct) -> Iterator[tuple[Kind, str]]:
    yield from (("field", _field(type(value), name)) for name in filled(value))


@cache
def _words(kind: type[Struct]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the fields of a struct that take one of some few texts, with these. Reasons are looked at as such."""
    found = ((field.name, tuple(_literals(field.type))) for field in msgspec.structs.fields(kind))
    return tuple((name, words) for name, words in found if words)


def _literals(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _literals(each)


@cache
def _field(kind: type[Struct], name: str) -> str:
    """Return what a field is called: by the struct that has it first, since many events share the same effects."""
    structs = (each for each in reversed(kind.__mro__) if issubclass(each, Struct) and each is not Struct)
    owner = next(each for each in structs if name in each.__struct_fields__)
    return f"{owner.__name__}.{name}"


def _value(kind: type[Struct], name: str, word: str) -> str:
    return f"{_field(kind, name)}={word}"


def _structs() -> tuple[type[Struct], ...]:
    """Return the events that an engine writes, and all that they can hold."""
    return structs_in(*(event for name, event in EVENT_TYPES.items() if name not in UNWRITTEN["event"]))
