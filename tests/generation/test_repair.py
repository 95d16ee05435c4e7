"""What a model gives is made storable, and what was replaced is said."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.content import Content, Json
from generation.repair import SurrogateJoiner, clean_arguments, clean_json, clean_text, parse_object

CODE_UNITS = st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE00F), max_size=8) | st.text(max_size=4)


@pytest.mark.parametrize(
    ("text", "cleaned", "repaired"),
    [
        ("plain", "plain", False),
        ("\ud83d\ude00", "😀", False),
        ("a\ud83d", "a\ufffd", True),
        ("\ude00a", "\ufffda", True),
        ("\ude00\ud83d", "\ufffd\ufffd", True),
        ("\ud83d\ud83d\ude00", "\ufffd😀", True),
        ("nul \x00 stays", "nul \x00 stays", False),
    ],
)
def test_clean_text(text: str, cleaned: str, repaired: bool) -> None:
    assert clean_text(text) == (cleaned, repaired)


@given(st.lists(CODE_UNITS, max_size=6))
def test_joining_deltas_is_cleaning_the_whole(deltas: list[str]) -> None:
    joiner = SurrogateJoiner()
    shown = "".join([joiner.push(delta) for delta in deltas] + [joiner.flush()])
    assert (shown, joiner.repaired) == clean_text("".join(deltas))
    assert shown.encode().decode() == shown


@pytest.mark.parametrize(
    ("value", "cleaned", "paths"),
    [
        ({"a": ["x\ud83d", 1, None, True]}, {"a": ["x\ufffd", 1, None, True]}, ("$.a[0]",)),
        ({"k\ud83d": 1}, {"k\ufffd": 1}, ("$.k\ufffd",)),
        ({"a": float("nan"), "b": float("inf")}, {"a": None, "b": None}, ("$.a", "$.b")),
        ({"a": 1.5}, {"a": 1.5}, ()),
    ],
)
def test_clean_json(value: Json, cleaned: Json, paths: tuple[str, ...]) -> None:
    assert clean_json(value, "$") == (cleaned, paths)
    Content(clean_json(value, "$")[0])


def test_what_is_nested_too_deeply_goes() -> None:
    value: Json = 1
    for _ in range(200):
        value = [value]
    cleaned, paths = clean_json(value, "$")
    assert len(paths) == 1
    assert json.dumps(cleaned).count("[") == 128


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ('{"a": 1}', {"a": 1}),
        ("{}", {}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ('{"a": NaN}', None),
        ('{"a": "\\ud83d", "b": NaN}', None),
        ("[1]", None),
        ('["\\ud83d"]', None),
        ("", None),
        ('{"a": ', None),
        ("null", None),
        ('{"a":' * 127 + "1" + "}" * 127, "deep"),
        ('{"a":' * 129 + "1" + "}" * 129, None),
        ('{"a":' * 5000, None),
        ('{"a":' * 5000 + "1" + "}" * 5000, None),
    ],
)
def test_parse_object(text: str, parsed: object) -> None:
    found = parse_object(text)
    if parsed == "deep":
        assert found is not None
    else:
        assert found == parsed


@pytest.mark.parametrize(
    ("text", "cleaned", "paths"),
    [
        ('{"a": 1}', '{"a": 1}', ()),
        ('{"a": "\ud83d\ude00"}', '{"a": "😀"}', ()),
        ('{"a": "\ud83d"}', '{"a": "\ufffd"}', ("$.arguments",)),
        ('{"a": "\\ud83d\\ude00"}', '{"a": "\\ud83d\\ude00"}', ()),
        ('{"a": "\\ud83d"}', '{"a":"\ufffd"}', ("$.arguments.a",)),
        ('{"a": "\\ud83d', '{"a": "\\ud83d', ()),
    ],
)
def test_clean_arguments(text: str, cleaned: str, paths: tuple[str, ...]) -> None:
    assert clean_arguments(text, "$.arguments") == (cleaned, paths)
