"""What a model gives is made storable, and what was replaced is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.content import Json
from events.values import DeltaJoiner
from generation.repair import MAX_REPAIRED, parse_object, repaired_arguments, repaired_value, whole_text

CODE_UNITS = st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE00F), max_size=8) | st.text(max_size=4)


@pytest.mark.parametrize(
    ("text", "whole", "replaced"),
    [
        ("plain", "plain", False),
        ("\ud83d\ude00", "😀", False),
        ("a\ud83d", "a\ufffd", True),
        ("\ude00a", "\ufffda", True),
        ("\ude00\ud83d", "\ufffd\ufffd", True),
        ("\ud83d\ud83d\ude00", "\ufffd😀", True),
        ("\ufffd", "\ufffd", False),
        ("nul \x00 stays", "nul \x00 stays", False),
    ],
)
def test_whole_text(text: str, whole: str, replaced: bool) -> None:
    assert whole_text(text) == (whole, replaced)


@given(st.lists(CODE_UNITS, max_size=6))
def test_joining_deltas_is_repairing_the_whole(deltas: list[str]) -> None:
    joiner = DeltaJoiner()
    shown = "".join([joiner.push(delta) for delta in deltas] + [joiner.finish()])
    assert (shown, joiner.repaired) == whole_text("".join(deltas))
    assert shown.encode().decode() == shown


@pytest.mark.parametrize(
    ("value", "storable", "paths"),
    [
        ({"a": ["x\ud83d", 1, None, True]}, {"a": ["x\ufffd", 1, None, True]}, ("$.m.a[0]",)),
        ("\ud83d", "\ufffd", ("$.m",)),
        ({"a": 1.5}, {"a": 1.5}, ()),
    ],
)
def test_repaired_value(value: Json, storable: Json, paths: tuple[str, ...]) -> None:
    assert repaired_value(value, "$.m") == (storable, paths)


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
    ("text", "repaired", "paths"),
    [
        ('{"a": 1}', '{"a": 1}', ()),
        ('{"a": "\ud83d\ude00"}', '{"a": "😀"}', ()),
        ('{"a": "\ud83d"}', '{"a": "\ufffd"}', ("$.arguments",)),
        ('{"a": "\\ud83d\\ude00"}', '{"a": "\\ud83d\\ude00"}', ()),
        ('{"a": "\\ud83d"}', '{"a":"\ufffd"}', ("$.arguments.a",)),
        ('{"a": "\\ud83d', '{"a": "\\ud83d', ()),
    ],
)
def test_repaired_arguments(text: str, repaired: str, paths: tuple[str, ...]) -> None:
    assert repaired_arguments(text, "$.arguments") == (repaired, paths)


def test_the_list_of_repairs_is_bounded() -> None:
    nan = float("nan")
    assert len(repaired_value([nan] * MAX_REPAIRED, "$.v")[1]) == MAX_REPAIRED
    repaired, paths = repaired_value([nan] * 200_000, "$.v")
    assert repaired == [None] * 200_000
    assert paths == (*(f"$.v[{place}]" for place in range(MAX_REPAIRED - 1)), "$.v")
    assert repaired_value({"k" * 10_000: [nan, nan], "a": nan}, "$.v")[1] == ("$.v", "$.v.a")
