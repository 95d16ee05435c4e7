"""When two contents, and two JSON values, are the same."""

from __future__ import annotations

import pytest

from events.content import Absent, Content, Json, same_json


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1, True),
        (1, True, False),
        (0, False, False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        ({"a": 1, "b": [2, None]}, {"b": [2, None], "a": 1}, True),
        ([1, True], [True, 1], False),
        ({"a": [1, {"b": True}]}, {"a": [True, {"b": 1}]}, False),
        ("1", 1, False),
        ("one", "one", True),
        (None, False, False),
    ],
)
def test_values_are_the_same_where_they_are_the_same_json(one: Json, other: Json, same: bool) -> None:
    assert same_json(one, other) is same
    assert (Content(one) == Content(other)) is same


def test_contents_without_a_value_are_the_same_by_size_and_why() -> None:
    assert Content(Absent.ERASED, 3) == Content(Absent.ERASED, 3)
    assert Content(Absent.ERASED, 3) != Content(Absent.NOT_LOADED, 3)
    assert Content(Absent.ERASED, 3) != Content("abc")
