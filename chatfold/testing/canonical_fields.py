"""Records of a log as lines of canonical text: each by its fields, so that a field that is added shows by itself.

Owns what of a record is shown and how. A field is shown where it is not its default. What is another each time is left
out unless it is kept, and stands in one table by the names of fields.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import timedelta
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from msgspec import NODEFAULT, Struct

from chatfold.corpus.structs import defaults_of
from chatfold.corpus.structs import facts_of as in_short
from events.content import Content
from events.ids import message_id
from events.messages import Message, QueuedMessage, Usage
from events.records import Spent
from events.vocabulary import QueuedMessageEdited

__all__ = [
    "INDENT",
    "KINDS",
    "Kept",
    "Shown",
    "fact",
    "facts_of",
    "kept_of",
    "kind_of",
    "lines_of",
    "own_lines",
    "since",
]

Kept: TypeAlias = Literal["ids", "times", "usage"]
"""What can be kept in the text though it is another each time: ids, actors' names and what follows from where it ran;
times, as seconds since the first event; tokens and costs, also in what decisions read."""

KINDS: Final[tuple[Kept, ...]] = get_args(Kept)

VARYING: Final[Mapping[str, Kept]] = {
    # Ids that chance or a service gives, and who it was.
    **dict.fromkeys(("chat", "parent", "owner", "author", "worker", "response_id", "continued", "kept"), "ids"),
    **dict.fromkeys(("provider_call_id", "source_id", "metadata", "Origin.digest", "RequestDigests.messages"), "ids"),
    # What follows from files, the machine, or the release of chatfold.
    **dict.fromkeys(("release", "os", "directory", "context_revision", "PolicyRecorded.digest"), "ids"),
    **dict.fromkeys(("ContextMark.revision", "ContextMarked.revision", "ContextPersisted.revision"), "ids"),
    **dict.fromkeys(("started_at", "first_part_at", "ended_at", "created_at", "not_before", "deadline"), "times"),
    "retry_unit_us": "times",
    **dict.fromkeys(("Step.cost_micros", "context_tokens"), "usage"),
}
"""Fields that are another each time: by name, or by type and name where other fields of that name are shown."""

VARYING_TYPES: Final[Mapping[type, Kept]] = {Usage: "usage", Spent: "usage"}
"""Records that are another each time, as a whole."""

ELSEWHERE: Final = frozenset({"decision", "policy", "role"})
"""Fields that have a line or a place of their own in the text."""

INDENT: Final = " " * 6
_WAITS: Final[Mapping[str, str]] = {"deadline": "waits_us"}
"""Times whose distance from their event follows from what was declared, with a name for that."""
_MOMENTS: Final = frozenset(name for name, kind in VARYING.items() if kind == "times" and not name.endswith("_us"))
_OPAQUE: Final = frozenset({"data", "metadata"})
"""Contents that nobody can review: told by size and a short digest, as those that are not there by size and why."""
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), 127, 0x85, 0x2028, 0x2029)}
"""Characters that would end a line, or be lost on the way through a file."""

_Place: TypeAlias = tuple[str, object]


class Shown(NamedTuple):
    """How records are shown: what is kept, when the chat began, and version and time of the event at hand."""

    keep: Collection[Kept]
    began: int = 0
    version: int = 0
    at: int = 0


def lines_of(label: str, record: Struct, shown: Shown) -> Iterator[str]:
    """Yield the lines of a record: what it is called with its facts, its texts, then the records in it.

    The first is left out where what follows says it: the text of a part, or nothing but other records.
    """
    if isinstance(record, Message):
        label = f"{label} {record.role}"
    elif isinstance(record, QueuedMessage):
        label = f"queued {label}"
    said, texts, records = facts_of(record, shown), [*_texts(record, shown)], [*_records(record, shown)]
    if said:
        yield f"{INDENT}{label}: {said}"
    elif isinstance(record, Message) or not (texts[0].startswith(f"{INDENT}{label} |") if texts else records):
        yield f"{INDENT}{label}"
    yield from texts
    yield from records


def facts_of(record: Struct, shown: Shown) -> str:
    """Return the facts of a record in a line."""
    return " ".join(fact(name, value) for name, value in _facts(record, shown))


def own_lines(record: Struct, shown: Shown) -> Iterator[str]:
    """Yield what stands below a record's facts: its texts, and the records in it."""
    yield from _texts(record, shown)
    yield from _records(record, shown)


def _texts(record: Struct, shown: Shown) -> Iterator[str]:
    """Yield the lines of a record's texts, that of a part under the part's own name."""
    for name, value in _places(record, shown):
        if _is_text(name, value):
            yield from _text((kind_of(type(record)) or name) if name == "text" else name, value)


def _records(record: Struct, shown: Shown) -> Iterator[str]:
    """Yield the lines of the records in a record; messages have the ids that they get in history."""
    place = len(getattr(record, "answers", ()))
    for name, value in _places(record, shown):
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Message | QueuedMessage):
                yield from lines_of(f"[{_id(record, shown, place)}]", each, shown)
                place += 1
            elif isinstance(each, Struct):
                yield from lines_of(kind_of(type(each)) or name.removesuffix("s"), each, shown)


def fact(name: str, value: object) -> str:
    """Return a fact as it stands in a line."""
    return f"{name}={json.dumps(value, sort_keys=True)}"


def kind_of(record: type[Struct]) -> str:
    """Return what a kind of part is called; the empty text of a record that is no part."""
    return str(record.__struct_config__.tag or "")


def kept_of(record: type, name: str) -> Kept | None:
    """Return what is to be kept for a field of such a record to be shown; None where it always is."""
    return VARYING.get(f"{record.__name__}.{name}") or VARYING.get(name)


def _places(record: Struct, shown: Shown) -> Iterator[_Place]:
    """Yield the fields that are shown, with what they hold."""
    defaults = defaults_of(type(record))
    for name in record.__struct_fields__:
        value, default = getattr(record, name), defaults.get(name, NODEFAULT)
        if name in ELSEWHERE or value is default or (type(value) is type(default) and value == default):
            continue
        kept = kept_of(type(record), name) or VARYING_TYPES.get(type(value))
        if kept is None or kept in shown.keep:
            yield name, value
        if name in _WAITS:
            yield _WAITS[name], value - shown.at


def _facts(record: Struct, shown: Shown) -> Iterator[_Place]:
    for name, value in _places(record, shown):
        if isinstance(value, Content):
            if not _is_text(name, value):
                yield name, in_short(value)
        elif name in _MOMENTS:
            yield name, since(value, shown.began)
        elif not any(isinstance(each, Struct) for each in (value if isinstance(value, tuple) else (value,))):
            yield name, value


def since(moment: object, began: int) -> str:
    """Return a time as its distance from the chat's first event."""
    assert isinstance(moment, int)  # noqa: S101 -- for type checkers: fields of that name hold nothing else
    distance = moment - began
    return f"{'-' if distance < 0 else '+'}{timedelta(microseconds=abs(distance))}"


def _id(record: Struct, shown: Shown, place: int) -> str:
    return record.id if isinstance(record, QueuedMessageEdited) else message_id(shown.version, place)


def _is_text(name: str, value: object) -> bool:
    return isinstance(value, Content) and value.available and name not in _OPAQUE


def _text(name: str, value: object) -> Iterator[str]:
    """Yield lines of what was said, behind a mark: none may pass for a line of ours, nor for a doctest to be run."""
    assert isinstance(value, Content)  # noqa: S101 -- for type checkers: nothing else is a text
    held = value.value
    text = held if isinstance(held, str) else json.dumps(held, ensure_ascii=False, sort_keys=True)
    for line in text.translate(_CONTROLS).split("\n"):
        yield f"{INDENT}{name} | {line}" if line else f"{INDENT}{name} |"
        name = " " * len(name)
