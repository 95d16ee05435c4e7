"""Why a tool does not take arguments, in short words that have no value of theirs: these may be read by anybody. Pure.

Owns the words. What the model is told is another matter, and says what validation says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from events.content import Json, same_json
from generation.tools.arguments import read_arguments, validated
from generation.tools.contract import Tool
from generation.tools.registry import CallRefused

_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "string_type": "text",
        "int_type": "a whole number",
        "int_parsing": "a whole number",
        "int_from_float": "a whole number",
        "float_type": "a number",
        "float_parsing": "a number",
        "decimal_type": "a number",
        "decimal_parsing": "a number",
        "bool_type": "true or false",
        "bool_parsing": "true or false",
        "none_required": "null",
        "list_type": "a list",
        "tuple_type": "a list",
        "set_type": "a list",
        "dict_type": "an object",
        "model_type": "an object",
        "model_attributes_type": "an object",
        "dataclass_type": "an object",
    }
)
"""Kind of error -> what a value must be."""

_LIMITS: Final = frozenset(
    {
        "literal_error", "enum", "greater_than", "greater_than_equal", "less_than", "less_than_equal", "multiple_of",
        "string_too_short", "string_too_long", "string_pattern_mismatch",
    }
)  # fmt: skip
"""Kinds of errors whose message has what was declared, and nothing of the value."""

_ABSENT: Final = frozenset({"missing", "extra_forbidden", "missing_argument", "unexpected_keyword_argument"})


def misfits(tool: Tool, text: str) -> Iterator[str]:
    """Yield why a tool does not take arguments, one line for each argument: ``cents: must be text, is a number``.

    Args:
        tool: The tool.
        text: The arguments, as JSON text.
    """
    try:
        given = read_arguments(text)
    except CallRefused:
        yield "they are no JSON object"
        return
    yield from _names(tool, given)
    found: dict[str, list[ErrorDetails]] = {}
    for error in _errors(tool, text):
        if error["loc"] and error["loc"][0] in given and error["type"] not in _ABSENT:
            found.setdefault(str(error["loc"][0]), []).append(error)
    yield from (f"{name}: {_said(errors, given[name])}" for name, errors in found.items())


def _names(tool: Tool, given: Mapping[str, Json]) -> Iterator[str]:
    known, required = tool.schema.get("properties"), tool.schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in given:
            yield f"{name} is missing"
    if isinstance(known, dict):
        yield from (f"{name} is not known" for name in sorted(given.keys() - known.keys()))


def _errors(tool: Tool, text: str) -> list[ErrorDetails]:
    try:
        validated(tool, text)
    except ValidationError as error:
        return error.errors(include_url=False, include_context=False)
    except Exception:  # noqa: BLE001 -- a validator of the application's own; its words may have a value
        return []
    return []


def _said(errors: list[ErrorDetails], value: Json) -> str:
    """Return what is wrong with an argument; of several kinds that it may be, one must fit."""
    own = [same_json(error["input"], value) for error in errors]
    within = "" if all(own) else "a value in it "
    wanted = [_KINDS.get(error["type"]) for error in errors]
    if None not in wanted and any(own) is all(own):
        return f"{within}must be {' or '.join(map(str, dict.fromkeys(wanted)))}, is {_kind(errors[0]['input'])}"
    if len(errors) == 1 and errors[0]["type"] in _LIMITS:
        return within + errors[0]["msg"].replace("Input should", "must").replace("String should", "must")
    return "is not taken by the check of its declaration"


def _kind(value: object) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "something else"
