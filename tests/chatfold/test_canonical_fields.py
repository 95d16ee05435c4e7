"""No change of a log is left out of its canonical text but what the table here names."""

import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Final, NamedTuple, get_args

import pytest
from msgspec import Struct, structs

from chatfold.corpus.unwritten import UNWRITTEN
from chatfold.testing import canonical_text, explain_change
from chatfold.testing.asserts import read_events
from chatfold.testing.canonical_fields import KINDS, VARYING, VARYING_TYPES
from events.content import Content
from events.errors import EventsError
from events.levels import structs_in
from events.messages import KeptResponse
from events.records import AttemptReport
from events.vocabulary import EVENT_TYPES, Event

LOGS: Final = sorted(Path("tests/corpus/v0.2").glob("*.jsonl"))

LEFT_OUT: Final[Mapping[str, str]] = {
    "Decision.passed": "follows from the rule: those before it in the table",
    "Decision.policy": "the digest of the policy that is told where it was recorded",
}
"""Fields whose changes do not show, whatever is kept, and why."""


SAID: Final[Mapping[str, str]] = {
    "ApprovalAnswer.approved": "approval at version 7 changed: approved true -> false",
    "BudgetAnswer.end_turn": "budget at version 10 changed: end_turn false -> true",
    "TurnLabelChanged.label": 'turn_label_changed at version 20 changed: label "Hit an error" -> "Hit an erroA"',
    "ErrorInfo.status_code": "error at version 10 changed: status_code 529 -> 530",
    "RetryScheduled.delay_us": "retry_scheduled at version 17 changed: delay_us 100000 -> 100001",
    "ContextFilePart.path": 'context_file at version 5 changed: path "AGENTS.md" -> "AGENTS.mA"',
}
"""What is said first of some changes: of the first log that has the field."""

UNUSED: Final[Mapping[str, Any]] = {"flags": (1,), "report": AttemptReport()}
"""Values of fields that no log of the corpus has everywhere."""


WHOLE: Final = {kind.__name__ for kind in (*VARYING_TYPES, KeptResponse)}
"""Records that stand only where such a field does."""


class Changed(NamedTuple):
    """A field that was changed: its name behind its type's, what is said of it, and whether it shows by default."""

    field: str
    said: str
    shows: bool


def changed_fields() -> Iterator[Changed]:
    """Change each field of each kind of record once, in the first log that has it, and look at the text."""
    done: set[str] = set()
    for log in LOGS:
        events = read_events(log)
        kept, text = "", ""
        for place, recorded in enumerate(events):
            for field, event in changes_of(recorded.event, done):
                if not kept:
                    kept, text = canonical_text(events, keep=KINDS), canonical_text(events)
                other = [*events]
                other[place] = structs.replace(recorded, event=event)
                with suppress(EventsError, LookupError):  # no log any more: the next one that has this field may be
                    said = [*explain_change(kept, canonical_text(other, keep=KINDS)), ""][0]
                    yield Changed(field, said, canonical_text(other) != text)
                    done.add(field)


def changes_of(event: Event, done: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the event with one field changed, for each that was not yet; records that it must have are looked into."""
    for record in records_in(event):
        for name in record.__struct_fields__:
            field, value = f"{type(record).__name__}.{name}", getattr(record, name)
            if (
                field not in done
                and (other := other_than(name, value)) is not value
                and (other is not None or may_be_none(type(record), name))
            ):
                yield field, replaced(event, record, structs.replace(record, **{name: other}))


@cache
def may_be_none(kind: type[Struct], name: str) -> bool:
    return NoneType in get_args(next(field.type for field in structs.fields(kind) if field.name == name))


def records_in(value: object) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        yield from records_in(tuple(getattr(value, name) for name in value.__struct_fields__))
    elif isinstance(value, tuple):
        for each in value:
            yield from records_in(each)


def other_than(name: str, value: object) -> Any:
    """Return another value for a field, where it has one; of a content another one of that size."""
    match value:
        case None | ():
            return UNUSED.get(name, value)
        case Content(available=True, value=str(text)):
            return Content(text[:-1] + ("A" if text[-1:] != "A" else "B"))
        case Content():
            return Content({"other": 1})
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}x"
        case dict():
            return {**value, "other": "x"}
        case tuple():
            return value[:-1]
        case _:
            return None


def replaced(value: Any, old: Struct, new: Struct) -> Any:
    """Return a value with one record in it replaced."""
    if value is old:
        return new
    if isinstance(value, tuple):
        return tuple(replaced(each, old, new) for each in value)
    if isinstance(value, Struct):
        return structs.replace(value, **{n: replaced(getattr(value, n), old, new) for n in value.__struct_fields__})
    return value


@pytest.fixture(scope="module")
def changed() -> Sequence[Changed]:
    return [*changed_fields()]


def test_each_change_shows_but_what_is_left_out(changed: Sequence[Changed]) -> None:
    assert {each.field for each in changed if not each.said} == {*LEFT_OUT}


def test_each_change_is_told_in_words(changed: Sequence[Changed]) -> None:
    said = {each.field: each.said for each in changed}
    assert "the log is written otherwise" not in said.values()
    assert {field: said[field] for field in SAID} == SAID


def test_what_is_not_kept_is_what_the_tables_name(changed: Sequence[Changed]) -> None:
    hidden = {each.field for each in changed if not each.shows}
    assert hidden == {each.field for each in changed if varies(each.field)} | {*LEFT_OUT}


def varies(field: str) -> bool:
    record, _, name = field.partition(".")
    return record in WHOLE or (bool({field, name} & {*VARYING}) and name != "deadline")  # its wait shows


def test_each_field_of_each_record_was_changed(changed: Sequence[Changed]) -> None:
    """In one type at least, where many have it: some events never do what all may."""
    names = {each.field for each in changed}
    missing = [
        owner
        for owner, kinds in owners().items()
        if not any(f"{kind.__name__}.{owner.partition('.')[2]}" in names for kind in kinds)
    ]
    assert not missing


def test_it_is_the_same_in_any_process() -> None:
    """Whatever its hash seed, time zone and locale."""
    log = LOGS[0].with_name("conversed_177_fork10.jsonl")
    program = f"from chatfold.testing import canonical_text; print(ascii(canonical_text({str(log)!r})))"
    places = ({"PYTHONHASHSEED": "1", "TZ": "Asia/Tokyo", "LC_ALL": "C"}, {"PYTHONHASHSEED": "2", "TZ": "UTC"})
    texts = {
        subprocess.run([sys.executable, "-c", program], env=os.environ | place, capture_output=True, check=True).stdout
        for place in places
    }
    assert len(texts) == 1


def owners() -> Mapping[str, Sequence[type[Struct]]]:
    """Return the types that have a field, by the first type that has it; not of fields that always hold a record."""
    found: dict[str, list[type[Struct]]] = {}
    for kind in structs_in(*(event for name, event in EVENT_TYPES.items() if name not in UNWRITTEN["event"])):
        for field in structs.fields(kind):
            if not (isinstance(field.type, type) and issubclass(field.type, Struct)):
                owner = next(base for base in reversed(kind.__mro__) if has(base, field.name))
                found.setdefault(f"{owner.__name__}.{field.name}", []).append(kind)
    return found


def has(base: type, name: str) -> bool:
    return base is not Struct and issubclass(base, Struct) and name in base.__struct_fields__
