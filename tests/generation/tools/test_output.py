"""What becomes of a tool's value."""

import enum
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from events.content import Content
from events.ids import CallKey
from generation.tools.contract import ToolOutput
from generation.tools.output import (
    Answer,
    CallResult,
    answer_of,
    error_answer,
    exception_answer,
    unrecordable,
)


class Model(BaseModel):
    a: int
    at: datetime | None = None


class Raw(BaseModel):
    data: bytes
    more: dict[str, bytes] = {}


@dataclass
class Data:
    a: int


class Record(msgspec.Struct):
    a: Any


class Table(BaseModel):
    rows: dict[int | str, int]


@dataclass
class Held:
    rows: dict[int | str, int]


class Color(enum.Enum):
    RED = "red"


_LOOP: list[Any] = []
_LOOP.append(_LOOP)


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("text", "text"),
        ("", ""),
        ("nul\x00", "nul\x00"),
        (None, None),
        (1, 1),
        ([1, {"a": (2, 3)}], [1, {"a": [2, 3]}]),
        (Model(a=1, at=datetime(2026, 1, 2, tzinfo=UTC)), {"a": 1, "at": "2026-01-02T00:00:00Z"}),
        (Data(1), {"a": 1}),
        (Record(1), {"a": 1}),
        ([Record(1), Model(a=2)], [{"a": 1}, {"a": 2, "at": None}]),
        ({"id": uuid.UUID(int=1)}, {"id": "00000000-0000-0000-0000-000000000001"}),
        (Decimal("1.10"), "1.10"),
        (Color.RED, "red"),
        (b"bytes", "bytes"),
        ({1: 2}, {"1": 2}),
        (memoryview(b"bytes"), "bytes"),
        ({b"\xff": 1, "\ud83d": 2, "x": 3}, {"\ufffd": 1, "\ufffd (2)": 2, "x": 3}),
        ({1: 2, "1": 3}, {"1": 2, "1 (2)": 3}),
        ({"1": 3, 1: 2, "1 (2)": 4}, {"1": 3, "1 (2)": 2, "1 (2) (2)": 4}),
        ([{"a": ({True: 1, "true": 2},)}], [{"a": [{"true": 1, "true (2)": 2}]}]),
        (Table(rows={1: 2, "1": 3}), {"rows": {"1": 2, "1 (2)": 3}}),
        (Held(rows={1: 2, "1": 3}), {"rows": {"1": 2, "1 (2)": 3}}),
        (Record(Record({1: 2, "1": 3})), {"a": {"a": {"1": 2, "1 (2)": 3}}}),
    ],
)
def test_values(value: object, output: object) -> None:
    assert answer_of(value, 65536) == Answer(output)  # type: ignore[arg-type]  # a table of JSON values


@pytest.mark.parametrize(
    ("value", "output", "paths"),
    [
        ("a\ud83d", "a\ufffd", ("$",)),
        ("\ud83d\ude00", "\U0001f600", ("$",)),
        ({"a": ["\udc00"]}, {"a": ["\ufffd"]}, ("$.a[0]",)),
        ([float("nan")], [None], ("$[0]",)),
        ({"n": 2**70}, {"n": str(2**70)}, ("$.n",)),
        (b"a\xff\xfeb", "a\ufffd\ufffdb", ("$",)),
        (bytearray(b"\xff"), "\ufffd", ("$",)),
        (memoryview(b"\xff"), "\ufffd", ("$",)),
        ({"a": [b"ok", b"\xe4"], "b": 1}, {"a": ["ok", "\ufffd"], "b": 1}, ("$.a[1]",)),
        ({"a": (b"\xff",), "b": {b"\xff"}}, {"a": ["\ufffd"], "b": ["\ufffd"]}, ("$.a[0]", "$.b[0]")),
        (Raw(data=b"\xff"), {"data": "\ufffd", "more": {}}, ("$.data",)),
        ([Raw(data=b"", more={"x y": b"\xff"})], [{"data": "", "more": {"x y": "\ufffd"}}], ("$[0].more['x y']",)),
    ],
)
def test_repairs_are_listed(value: object, output: object, paths: tuple[str, ...]) -> None:
    answer = answer_of(value, 65536)
    assert (answer.output, answer.repaired, answer.is_error) == (output, paths, False)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (object(), "object"),
        ([object()], "object"),
        (_LOOP, "Circular"),
        ((n for n in [1]), "generator"),
        (iter([1]), "list_iterator"),
        (lambda: 1, "function"),
    ],
)
def test_values_without_a_json_form_are_errors(value: object, says: str) -> None:
    answer = answer_of(value, 65536)
    assert answer.is_error
    assert isinstance(answer.output, str)
    assert any(word in answer.output for word in says.split("|")), answer.output


def test_tool_output_says_itself_whether_it_is_an_error() -> None:
    assert answer_of(ToolOutput("no", is_error=True), 99) == Answer("no", is_error=True)
    assert answer_of(ToolOutput({"a": 1}), 99) == Answer({"a": 1})
    assert answer_of(ToolOutput(ToolOutput("x"), is_error=True), 99).is_error


def test_a_long_text_is_cut() -> None:
    answer = answer_of("a" * 5000, 1000)
    assert isinstance(answer.output, str)
    assert len(answer.output) <= 1000
    assert not answer.is_error


def test_long_json_becomes_cut_text() -> None:
    answer = answer_of({"rows": list(range(2000))}, 1000)
    assert isinstance(answer.output, str)
    assert answer.output.startswith('{"rows":[0,1,2')
    assert answer.output.endswith("1998,1999]}")
    assert answer_of({"a": 1}, 7) == Answer({"a": 1})


def test_errors_are_told_by_type_and_text() -> None:
    assert exception_answer(KeyError("x"), 99) == Answer("KeyError: 'x'", is_error=True)
    assert exception_answer(ValueError(), 99) == Answer("ValueError", is_error=True)
    assert exception_answer(ValueError("\udc00"), 99) == Answer("ValueError: \ufffd", is_error=True, repaired=("$",))
    assert len(str(error_answer("x" * 5000, 600).output)) <= 600


def test_an_error_whose_text_fails() -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise LookupError

    assert exception_answer(Broken(), 99).output == "Broken: (its text cannot be read: LookupError)"


def test_part() -> None:
    result = CallResult(
        key=CallKey("1.0.0"), name="a", answer=Answer("o", is_error=True, repaired=("$",)), started_at=1, ended_at=2
    )
    part = result.part()
    assert part.output == Content("o")
    assert (part.call, part.is_error, part.started_at, part.ended_at, part.repaired) == ("1.0.0", True, 1, 2, ("$",))


def test_what_cannot_be_recorded_is_an_error_that_says_so() -> None:
    large = "x" * (17 << 20)
    result = CallResult(
        key=CallKey("2.0.0"), name="t", answer=Answer("x"), started_at=1, ended_at=2, context=large, rewritten="{}"
    ).part()
    instead = unrecordable(result, "it is too large")
    assert (instead.call, instead.started_at, instead.ended_at) == (result.call, 1, 2)
    assert instead.is_error
    assert (instead.context, instead.rewritten) == (None, Content("{}"))
    assert instead.output == Content("The tool ran, but its result cannot be recorded: it is too large")
