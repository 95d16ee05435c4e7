"""What callers give is refused where it cannot be stored exactly; what models and tools give is repaired."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.errors import InvalidValue
from events.values import (
    INT_MAX,
    INT_MIN,
    DeltaJoiner,
    Limits,
    check_value,
    format_integer,
    parse_json_strict,
    repair_text,
    repair_value,
)
from tests.events.strategies import JSON

PROPERTY = settings(derandomize=True, max_examples=300, deadline=None)
WILD_TEXTS = st.text(st.characters(), max_size=8) | st.text(st.sampled_from("a\ud83d\ude00\x00é"), max_size=8)
WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WILD_TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WILD_TEXTS | st.integers(), inner, max_size=3),
    max_leaves=8,
)


def nested(levels: int, inner: Any = 1) -> Any:
    for _ in range(levels):
        inner = [inner]
    return inner


@PROPERTY
@given(JSON)
def test_plain_json_passes_and_encoding_loses_nothing(value: Any) -> None:
    check_value(value)
    assert msgspec.json.decode(msgspec.json.encode(value)) == value
    assert repair_value(value) == (value, ())


@pytest.mark.parametrize(
    ("value", "path", "why"),
    [
        ("a\ud83d", "$", "lone surrogate at character 1"),
        ({"parts": [{"text": "\ude00"}]}, "$.parts[0].text", "lone surrogate"),
        ({"a b": [float("nan")]}, "$['a b'][0]", "nan is no JSON number"),
        ([1, -math.inf], "$[1]", "-inf"),
        ({"it's": 2**64}, r"$['it\'s']", "64 bits"),
        ([INT_MIN - 1], "$[0]", "64 bits"),
        ({"a": {1: 2}}, "$.a", "the key 1 is int"),
        ({"\ud800": 1}, r"$['\ud800']", "lone surrogate"),
        ({"a": object()}, "$.a", "object is no JSON type"),
        ({"a": {1, 2}}, "$.a", "set is no JSON type"),
        (b"bytes", "$", "bytes is no JSON type"),
        (nested(129), "$" + "[0]" * 128, "too deep"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value: Any, path: str, why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        check_value(value)
    assert caught.value.path == path
    assert why in caught.value.why
    str(caught.value).encode()


def test_the_extremes_pass() -> None:
    check_value([nested(127), INT_MIN, INT_MAX, "\x00", "😀", True, None, -0.0])
    with pytest.raises(InvalidValue):
        check_value(nested(3), "$", Limits(depth=2))


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("", ""),
        ("plain é 😀 \x00", "plain é 😀 \x00"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ud83db", "\ufffdb"),
        ("\ude00\ud83d\ude00\ud83d\ud83d", "\ufffd😀\ufffd\ufffd"),
    ],
)
def test_texts_are_repaired(text: str, repaired: str) -> None:
    assert repair_text(text) == (repaired, text != repaired)


@PROPERTY
@given(st.lists(WILD_TEXTS, max_size=6))
def test_deltas_give_what_the_whole_text_gives(deltas: list[str]) -> None:
    joiner = DeltaJoiner()
    joined = "".join([*(joiner.push(delta) for delta in deltas), joiner.finish()])
    assert joined == repair_text("".join(deltas))[0]
    assert joiner.repaired == (joined.count("\ufffd") > "".join(deltas).count("\ufffd"))


def test_a_pair_split_by_two_deltas_is_joined() -> None:
    joiner = DeltaJoiner()
    assert [joiner.push("a\ud83d"), joiner.push("\ude00b"), joiner.finish()] == ["a", "😀b", ""]
    assert not joiner.repaired
    assert [joiner.push("\ud83d"), joiner.finish(), joiner.finish()] == ["", "\ufffd", ""]
    assert joiner.repaired


@PROPERTY
@given(WILD)
def test_whatever_comes_can_be_stored_after_its_repair(value: Any) -> None:
    repaired, paths = repair_value(value)
    check_value(repaired)
    if not paths:
        assert repaired == value
    assert repair_value(repaired) == (repaired, ())


def test_values_are_repaired_and_the_places_listed() -> None:
    value = {"n": math.nan, "big": 2**64, "t": ["ok", "\ud800"], 7: "seven", "pair": "\ud83d\ude00", "tuple": (1,)}
    assert repair_value(value) == (
        {"n": None, "big": "18446744073709551616", "t": ["ok", "\ufffd"], "7": "seven", "pair": "😀", "tuple": [1]},
        ("$.n", "$.big", "$.t[1]", "$['7']", "$.pair"),
    )


def test_what_is_too_deep_becomes_its_json_text() -> None:
    repaired, paths = repair_value([1, [2, {"a": [3]}]], Limits(depth=2))
    assert repaired == [1, [2, '{"a": [3]}']]
    assert paths == ("$[1][1]",)
    with pytest.raises(InvalidValue, match="too deep to be written"):
        repair_value(nested(100_000))
    with pytest.raises(InvalidValue, match=r"\$\.a"):
        repair_value({"a": object()})


def test_integers_of_any_length_have_a_text() -> None:
    assert format_integer(-(2**64)) == "-18446744073709551616"
    assert int(format_integer(10**5000), 16) == 10**5000


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ('{"a": 1, "a": 1}', "$.a", "stands twice"),
        ('{"x": [{"a": 1, "b": 2, "a": {}}]}', "$.x[0].a", "stands twice"),
        ('{"a": NaN}', "$.a", "nan"),
        ("[-Infinity]", "$[0]", "-inf"),
        ("[1e999]", "$[0]", "inf"),
        ("[123456789012345678901234567890]", "$[0]", "64 bits"),
        ("[-18446744073709551616]", "$[0]", "64 bits"),
        (f"[{'9' * 5000}]", "$[0]", "64 bits"),
        ('"\\ud800"', "$", "lone surrogate"),
        ("", "$", "not JSON: Expecting value (line 1, column 1)"),
        ('{"a": 1', "$", "not JSON"),
        ("[" * 100_000, "$", "too deep"),
        ("[" * 129 + "]" * 129, "$" + "[0]" * 128, "too deep"),
    ],
)
def test_strict_parsing_reports_what_an_easy_parser_hides(text: str, path: str, why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_json_strict(text)
    assert (caught.value.path, why in caught.value.why) == (path, True)


@PROPERTY
@given(JSON)
def test_strict_parsing_gives_what_was_written(value: Any) -> None:
    assert parse_json_strict(json.dumps(value)) == value
