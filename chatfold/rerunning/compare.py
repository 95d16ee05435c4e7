"""Whether an event came out again: compared field by field, but for what a rerun cannot know.

Times of models and tools are not compared, nor how a text was repaired, nor what was erased; each with its reason in
one table. Digests of requests are compared by section, elsewhere. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from events import vocabulary as v
from events.content import Content, same_json
from events.diff import Change, changes
from events.envelope import Recorded
from events.paths import child

_STEPS: Final = ("$.added[].step", "$.report.step", "$.cut.step")
_TIMES: Final = ("started_at", "first_part_at", "ended_at")

NOT_COMPARED: Final = MappingProxyType(
    {
        **{
            f"{step}.{time}": "when a model was called and spoke is no effect of the engine"
            for step in _STEPS
            for time in _TIMES
        },
        **{f"$.added[].parts[].{time}": "when a part came is no effect of the engine" for time in _TIMES},
        "$.added[].parts[].created_at": "when a call came is no effect of the engine",
        "$.added[].parts[].repaired": "what was repaired came otherwise than it was recorded",
        **{f"{step}.kept.before": "a digest of the request's messages: compared as a section" for step in _STEPS},
        **{f"{step}.kept.options": "a digest of the request's options: compared as a section" for step in _STEPS},
        "$.report.request": "compared by section",
        "$.cut.request": "compared by section",
    }
)
"""Path in an event -> why a difference there is none."""

_IGNORED: Final = frozenset(NOT_COMPARED)
_ENVELOPE: Final = ("recorded_at", "source", "dest", "actor", "index")


def differences(
    want: Recorded,
    got: Recorded,
    *,
    declared: bool,
    others: Collection[str] = (),
    split: bool = False,
    redacted: bool = False,
) -> tuple[Change, ...]:
    """Return what differs between an event of a log and the one that came in its place.

    Args:
        want: The log's.
        got: What came.
        declared: Whether agents' declarations are at hand.
        others: The sections that are others today, or of which nothing is known: what follows from them is none.
        split: Whether it may have been appended apart from those before it.
        redacted: Whether the log's contents are made up: then they are compared by kind and size.
    """
    if type(want.event) is not type(got.event):
        return (Change("$.type", want.event.type, got.event.type),)
    found = [
        each
        for each in changes(want.event, got.event, ignore=_IGNORED)
        if not _excused(want.event, each, declared=declared) and not (redacted and _stands_for(want.event, each))
    ]
    if isinstance(want.event, v.CompactionCommitted):
        found = [change for each in found for change in _in_details(each, others)]
    for name in _ENVELOPE:
        one, other = getattr(want.envelope, name), getattr(got.envelope, name)
        if one != other and not (split and name == "index"):
            found.append(Change(f"$.envelope.{name}", one, other))
    return tuple(found)


_DECLARED: Final = frozenset(
    f"$.decision.{where}.{name}"
    for where in ("facts", "read")
    for name in (
        "max_steps",
        "threshold",
        "visible_after",
        "limit",
        "tokens_limit",
        "cost_micros_limit",
        "turns_limit",
        "priced",
        "model",
    )
)
"""What decisions read of declarations: where those of today are taken, it is their change, and named as such."""


def _excused(event: v.Event, change: Change, *, declared: bool) -> bool:
    before, after = change.before, change.after
    if isinstance(before, Content) and not before.available:
        return isinstance(after, Content) and before.size == after.size
    if not declared:
        return False
    return change.path in _DECLARED or (isinstance(event, v.PolicyRecorded) and change.path.startswith("$.policy"))


_NAMED: Final = "names of providers, sources and tools in it may be made up, and of another size"
UNSIZED: Final = MappingProxyType(
    {
        (v.TurnFailed, "$.error.message"): _NAMED,
        (v.RetryScheduled, "$.error.message"): _NAMED,
        (v.ToolResultRecorded, "$.result.output"): _NAMED,
        (v.CompactionCommitted, "$.added[2].parts[0].output"): "details estimate the size of texts that no log has",
    }
)
"""Type of event of a redacted log, path in it -> why the size of a content there is not compared either."""


def _stands_for(event: v.Event, change: Change) -> bool:
    """Whether a content is what was replaced in a redacted log, as far as one can see: of the same kind and size."""
    before, after = change.before, change.after
    if not isinstance(before, Content) or not isinstance(after, Content):
        return False
    if not before.available or not after.available or isinstance(before.value, str) is not isinstance(after.value, str):
        return False
    return before.size == after.size or (type(event), change.path) in UNSIZED


_FOLLOWS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "estimated_context_tokens": frozenset({"system", "tools", "policy"}),
        "threshold_percent": frozenset({"policy"}),
        "threshold_tokens": frozenset({"policy"}),
        "context_limit_tokens": frozenset({"policy"}),
        "usage_percent": frozenset({"policy"}),
    }
)
"""Field in what clients are told of a compaction -> the sections that it follows from. What stands
in other fields is told as content is."""


def _in_details(change: Change, others: Collection[str]) -> Iterator[Change]:
    """Yield what differs within what clients are told of a compaction, but for what follows from sections; else it."""
    before, after = (
        each.value if isinstance(each, Content) and each.available else None for each in (change.before, change.after)
    )
    if not isinstance(before, dict) or not isinstance(after, dict) or before.keys() != after.keys():
        yield change
        return
    for name, one in before.items():
        other = after[name]
        if not same_json(one, other) and _FOLLOWS.get(name, frozenset()).isdisjoint(others):
            known = name in _FOLLOWS
            yield Change(child(change.path, name), *((one, other) if known else (Content(one), Content(other))))
