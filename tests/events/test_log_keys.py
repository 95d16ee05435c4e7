"""Keys that stand twice: the quick look at a line refuses what the look at each key refuses, and nothing else."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from events import logfile
from events.logfile import check_keys, event_line
from tests.events.logs import log_of
from tests.events.strategies import EVENTS

SPELLINGS = ('"a"', '"\\u0061"', '"b"', '"é"', '"\\u00e9"', '"😀"', '"\\ud83d\\ude00"', '""', '"\\/"', '"/"')
"""Keys, some of them the same one in other letters."""

SCALARS = ("0", "-0", "1.0", "1e2", "1" * 25, "1" * 5000, "true", "null", '"a"', '"\\u0061"', '"é"')


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Objects as text, whatever their keys are."""
    members = st.lists(st.tuples(st.sampled_from(SPELLINGS), inner), max_size=4)
    return st.tuples(members, st.sampled_from((",", ", "))).map(
        lambda drawn: "{" + drawn[1].join(f"{key}:{value}" for key, value in drawn[0]) + "}"
    )


def arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")


TEXTS = st.recursive(st.sampled_from(SCALARS), lambda inner: objects(inner) | arrays(inner), max_leaves=12)


def verdict(line: bytes) -> str | None:
    """What is said of a line; None where nothing is wrong."""
    try:
        check_keys(line)
    except ValueError as error:
        return str(error)
    return None


def slow_verdict(line: bytes) -> str | None:
    with mock.patch.object(logfile, "_is_canonical", return_value=False):
        return verdict(line)


def pairs_twice(line: bytes) -> bool:
    """The plain rule, in words of its own: whether any object of the text has two equal keys."""
    found = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found.append(len({key for key, _ in pairs}) < len(pairs))
        return dict(pairs)

    json.loads(line.decode(), object_pairs_hook=note, parse_int=str, parse_float=str)
    return any(found)


@given(TEXTS)
@example('{"a":1,"a":1}')
@example('{"a":{"b":[{"a":1,"\\u0061":1}]}}')
@example('{"\\ud800":1,"\\ud800":2}')
def test_the_quick_look_refuses_exactly_what_the_slow_one_does(text: str) -> None:
    line = text.encode()
    said = verdict(line)
    assert said == slow_verdict(line)
    assert (said is not None) is pairs_twice(line)


@given(TEXTS)
def test_what_is_canonical_has_no_key_twice(text: str) -> None:
    line = text.encode()
    if logfile._is_canonical(line):
        assert not pairs_twice(line)


@given(st.lists(EVENTS, min_size=1, max_size=3))
def test_lines_that_we_wrote_need_no_slow_look(events: list[Any]) -> None:
    for stored in log_of(events).events:
        with mock.patch.object(json, "loads", side_effect=AssertionError):
            check_keys(event_line(stored))


@pytest.mark.parametrize("line", [b'{"a":1, "b":2}', b'{"a":1.0e0}', b'{"a":"\\u0061"}', b'{"a":' + b"9" * 5000 + b"}"])
def test_lines_in_another_form_are_looked_at_slowly_and_taken(line: bytes) -> None:
    assert not logfile._is_canonical(line)
    check_keys(line)


def test_a_key_that_stands_twice_is_named() -> None:
    with pytest.raises(ValueError, match="the key 'a' stands twice"):
        check_keys(b'{"a":1,"a":2}')
    assert msgspec.json.decode(b'{"a":1,"a":2}') == {"a": 2}  # why it is refused: readers take one of them
