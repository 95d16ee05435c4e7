"""What becomes of the argument text that a model gave."""

from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from generation.tools.arguments import arguments_problem, parse_arguments
from generation.tools.contract import Tool, client_tool
from generation.tools.registry import CallRefused


class Item(BaseModel):
    count: int


def _fail(value: int) -> int:
    raise LookupError(value)


def book(
    city: str,
    day: date | None = None,
    items: list[Item] = [],  # noqa: B006 - never changed
    start: Annotated[int, Field(alias="from")] = 0,
    odd: Annotated[int, AfterValidator(_fail)] = 0,
) -> str:
    return f"{city}{day}{items}{start}{odd}"


BOOK = Tool.from_function(book)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"city": "Ulm"}', {"city": "Ulm"}),
        ('{"city": "Ulm", "day": "2026-02-03"}', {"city": "Ulm", "day": date(2026, 2, 3)}),
        ('{"city": "Ulm", "items": [{"count": 2}]}', {"city": "Ulm", "items": [Item(count=2)]}),
        ('{"city": "Ulm", "from": 3}', {"city": "Ulm", "start": 3}),
        (' {"city": "\\ud83d\\ude00"} ', {"city": "\U0001f600"}),
    ],
)
def test_valid(text: str, arguments: dict[str, Any]) -> None:
    assert parse_arguments(BOOK, text) == arguments


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", [r"$.city: Field required"]),
        ("{", ["not JSON", "line 1"]),
        ('{"city": "Ulm"} x', ["not JSON"]),
        ("[]", ["$: must be a JSON object"]),
        ('"Ulm"', ["$: must be a JSON object"]),
        ("null", ["$: must be a JSON object"]),
        ('{"city": 1}', ["$.city: Input should be a valid string"]),
        ('{"city": "a", "city": "b"}', ["$.city: the key stands twice"]),
        (
            '{"city": "Ulm", "items": [{"count": 1}, {"count": "x"}]}',
            ["$.items[1].count: Input should be a valid integer"],
        ),
        ('{"city": "Ulm", "start": 3}', ["$.start: Extra inputs are not permitted"]),
        ('{"city": "Ulm", "day": "tomorrow"}', ["$.day"]),
        ('{"city": 1, "from": "x"}', ["$.city", "$.from"]),
        ('{"city": "Ulm", "from": NaN}', ["$.from", "nan"]),
        ('{"city": "Ulm", "from": 1e999}', ["$.from", "inf"]),
        ('{"city": "Ulm", "from": ' + "9" * 5000 + "}", ["$.from", "64 bits"]),
        ('{"city": "\\ud83d"}', ["$.city: lone surrogate"]),
        ('{"city": ' + "[" * 100_000 + "}", ["nested too deep"]),
        ('{"city": "Ulm", "odd": 1}', ["LookupError: 1"]),
        ('{"city": "Ulm", "items": [' + ",".join(["{}"] * 12) + "]}", ["$.items[9].count", "and 2 more"]),
    ],
)
def test_refused_with_the_place(text: str, says: list[str]) -> None:
    with pytest.raises(CallRefused) as refused:
        parse_arguments(BOOK, text)
    for part in ["the tool was not run", *says]:
        assert part in str(refused.value)


def test_blank_is_no_arguments() -> None:
    def ping() -> str:
        return "pong"

    assert parse_arguments(Tool.from_function(ping), " \n") == {}


@pytest.mark.parametrize("made", [BOOK, Tool(name="any", description="", schema={"type": "object"}, function=dict)])
def test_arguments_that_are_gone_are_not_none(made: Tool) -> None:
    with pytest.raises(CallRefused, match="were erased, and the tool was not run without them"):
        parse_arguments(made, None)


def test_a_tool_with_a_given_schema_takes_any_object() -> None:
    made = Tool(name="any", description="", schema={"type": "object"}, function=dict)
    assert parse_arguments(made, '{"a": [1]}') == {"a": [1]}
    with pytest.raises(CallRefused):
        parse_arguments(made, "1")


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    n: int


class Strict(BaseModel):
    n: int
    when: date | None = None


@dataclass
class Held:
    n: int


@pytest.mark.parametrize("form", [Strict, Held])
def test_a_clients_type_is_held_to_the_letter_of_its_schema(form: type) -> None:
    tool = client_tool("pick", "Pick.", form)
    assert arguments_problem(tool, '{"n": 1}') is None
    for text, said in (
        ('{"n": "1"}', "$.n: "),
        ('{"n": 1, "x": 2}', "$.x: there is no such argument"),
        ("{}", "$.n: "),
    ):
        problem = arguments_problem(tool, text)
        assert problem is not None
        assert said in problem


def test_what_a_schema_of_a_clients_type_allows_is_taken() -> None:
    assert arguments_problem(client_tool("pick", "Pick.", Loose), '{"n": 1, "x": 2}') is None
    assert arguments_problem(client_tool("pick", "Pick.", Strict), '{"n": 1, "when": "2026-11-29"}') is None
