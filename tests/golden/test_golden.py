"""Golden samples: the stored forms of every release, read by this one.

A failure here means that the stored form of events has changed, so that logs of a release in use would be read wrongly
or not at all. Never edit a sample. If the change is wanted: raise the type's schema number, write an upcast step
(``events/upcasting.py``), leave the old sample as it is with what it now decodes to, and add the new form as a sample
in a folder of the new release. If a test says that a sample is missing or a field unfilled: fill it in the newest
``events_*.py`` under a new release's folder and run ``python -m tests.golden.add``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

from chatfold.testing.prompts import prompt_problems
from chatstate.audit import audit
from events.codec import decode
from events.control import encode_control
from events.digest import verify_chain
from events.logfile import LogFile, parse_event_line, read_log, write_log
from events.parts import Part
from events.reducer import fold
from events.vocabulary import EVENT_TYPES
from tests.golden.add import EVENTS, FOLDER, add, event_file, sample_event, samples
from tests.golden.logs_v0_1 import LOGS

EVENT_FILES = sorted(FOLDER.glob("v*/events/*.json"))
SAMPLES = tuple(event for named in EVENTS.values() for event in named.values())
LOG_FILES = sorted(FOLDER.glob("v*/logs/*.jsonl"))


def read(name: str) -> LogFile:
    path = FOLDER / "v0.1" / "logs" / f"{name}.jsonl"
    with path.open("rb") as lines:
        return read_log(lines, path.name)


@pytest.mark.parametrize("path", EVENT_FILES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_an_event_decodes_to_what_was_written_and_encodes_to_the_same_bytes(path: Path) -> None:
    """Written by the release that the folder is named after; a failure means that its logs are read wrongly."""
    stored = parse_event_line(path.read_bytes())
    assert stored.envelope.type == path.stem.partition(".")[0]
    assert verify_chain([stored]) == stored.digest
    event = decode(stored).event
    assert event == EVENTS[path.parts[-3]][path.stem]
    assert sample_event(event) == stored
    assert event_file(stored) == path.read_bytes()


def test_no_event_type_lacks_a_sample() -> None:
    assert {path.stem.partition(".")[0] for path in EVENT_FILES} == set(EVENT_TYPES)


def test_each_field_of_all_that_is_stored_is_filled_in_a_sample() -> None:
    """Of each event type in one of its own samples."""
    unfilled: dict[str, bool] = {}
    for value in structs(SAMPLES):
        for field in msgspec.structs.fields(value):
            name = f"{type(value).__name__}.{field.name}"
            unfilled[name] = unfilled.get(name, True) and not filled(field, getattr(value, field.name))
    assert [name for name, empty in unfilled.items() if empty] == []


def test_every_struct_that_an_event_can_hold_is_in_a_sample() -> None:
    reachable: set[type] = set()
    for cls in EVENT_TYPES.values():
        reach(cls, reachable)
    found = {type(value) for value in structs(SAMPLES)}
    assert reachable == found
    assert set(get_args(Part)) <= found
    assert len(found) > len(EVENT_TYPES) + 20


def structs(value: Any) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        for name in value.__struct_fields__:
            yield from structs(getattr(value, name))
    elif isinstance(value, tuple):
        for member in value:
            yield from structs(member)


def filled(field: msgspec.structs.FieldInfo, value: Any) -> bool:
    if field.default is not msgspec.NODEFAULT:
        return bool(value != field.default) and value not in ((), {})
    return value not in ((), {}, "")


def reach(annotation: Any, found: set[type]) -> None:
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        if annotation not in found:
            found.add(annotation)
            for field in msgspec.structs.fields(annotation):
                reach(field.type, found)
        return
    for argument in get_args(annotation):
        reach(argument, found)


@pytest.mark.parametrize("path", LOG_FILES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_log_reads_verifies_folds_and_is_written_again_byte_for_byte(path: Path) -> None:
    """Written by the release that the folder is named after; a failure means that its exports cannot be used."""
    with path.open("rb") as lines:
        log = read_log(lines, path.name)
    assert verify_chain(log.events).hex() == log.header.head
    assert b"".join(write_log(log.header, log.events)) == path.read_bytes()
    recorded = [decode(stored) for stored in log.events]
    story = LOGS[path.stem]
    assert [one.event for one in recorded] == story.events
    assert list(log.events) == story.stored
    assert [*audit(recorded)] == []
    assert prompt_problems(recorded) == []
    bare = fold(decode(stored, content=False) for stored in log.events)
    assert encode_control(fold(recorded).control) == encode_control(bare.control)


def test_no_log_lacks_its_sample() -> None:
    assert {path.stem for path in LOG_FILES} == set(LOGS)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("step", [b'"finish_reason":"stop"', b'"usage":{"input":120,"output":45,"cache_read":3000,"cache_write":800']),
        ("step", [b'"provider":"anthropic"', b'"model":"claude-test-1"', b'"response_id":"msg_01"', b'"metadata":[']),
        ("step", [b'"started_at":', b'"first_part_at":', b'"ended_at":', b'"cost_micros":4321']),
        ("message_interrupted", [b'"interrupted":true']),
        ("retry", [b'"error":{"kind":"rate_limit"', b'"retryable":true', b'"status_code":429', b'"retry_after_us":']),
        ("open_actions", [b'"kind":"client_call"', b'"kind":"approval"', b'"kind":"budget"', b'"action":6']),
        ("open_actions", [b'"on_expiry":"go_on"', b'"on_expiry":"end_turn"', b'"approved":true', b'"raised":{']),
        ("compaction", [b'"manual":true', b'"manual":false', b'"boundary":"10.0"', b'"origin":"13.0"']),
        ("flags_and_release", [b'"flags":[1]', b'"release":"0.1.0"']),
        ("queue_item", [b'"model":"claude-test-2"', b'"effort":"high"', b'"effort":"low"', b'"promoted":["5.0"]']),
        ("attempt_kind", [b'"kind":"context"', b'"kind":"generate"', b'"kind":"tools"', b'"kind":"compact"']),
        ("request_digests", [b'"request":{"system":"', b'"tools":"', b'"messages":"', b'"options":"']),
        ("decision_record", [b'"rule":"D11"', b'"action":"generate"', b'"passed":["D0",', b'"facts":{', b'"policy":"']),
        ("attempt_usage", [b'"report":{"step":{"provider":"anthropic"', b'"takeover":true', b'"reason":"shutdown"']),
    ],
)
def test_the_thing_that_a_log_is_kept_for_is_in_its_facts(name: str, facts: list[bytes]) -> None:
    """Facts, not content: each must survive the erasing of the whole log."""
    stored = b"\n".join(one.facts for one in read(name).events)
    assert [fact for fact in facts if fact not in stored] == []


def test_usage_of_attempts_that_gave_no_message_is_counted() -> None:
    """Retry, release, takeover, failure and interruption each report the tokens of the attempt that they end."""
    control = fold(decode(stored, content=False) for stored in read("attempt_usage").events).control
    assert (control.usage.input, control.usage.cache_read) == (5 * 120, 5 * 3000)


def test_what_people_read_is_no_fact() -> None:
    for path in EVENT_FILES:
        stored = parse_event_line(path.read_bytes())
        for text in ("Hello", "provider is busy", "AGENTS.md", "Keep the numbers", "rate_limit_error", "better title"):
            assert text.encode() not in stored.facts


def test_samples_are_added_and_never_changed(tmp_path: Path) -> None:
    new, old = tmp_path / "a" / "new.json", tmp_path / "old.json"
    old.write_bytes(b"as it was")
    assert add({new: b"1", old: b"another"}) == ([], [old])
    assert (new.exists(), old.read_bytes()) == (False, b"as it was")
    assert add({new: b"1", old: b"as it was"}) == ([new], [])
    assert new.read_bytes() == b"1"


def test_all_samples_are_what_the_code_gives() -> None:
    found = samples()
    assert [path.name for path, text in found.items() if path.read_bytes() != text] == []
    assert set(found) == {*EVENT_FILES, *LOG_FILES}
