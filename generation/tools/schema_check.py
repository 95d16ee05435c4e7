"""What is wrong with a JSON schema that an application wrote by hand. Pure.

Finds the slips that a service would refuse only when the chat runs: a misspelt type, a keyword whose value has another
form. It knows the keywords that schemas of tools use; what it does not know it leaves to the service.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from events.content import Json
from events.paths import child, item

TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")

_OF_ONE: Final = ("additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then")
_OF_LIST: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_OF_NAMES: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
_COUNTS: Final = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")
_NUMBERS: Final = ("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf")
_TEXTS: Final = ("$ref", "description", "format", "pattern", "title")


def problems(schema: Json, path: str) -> Iterator[str]:
    """Yield what is wrong with a schema, each with its path."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield f"{path}: a schema is an object, not {_kind(schema)}"
        return
    yield from _type_problems(schema, path)
    yield from _form_problems(schema, path)
    for keyword in _OF_ONE:
        if keyword in schema:
            yield from _of_one(schema[keyword], keyword, child(path, keyword))
    for keyword in _OF_LIST:
        if keyword in schema:
            yield from _of_list(schema[keyword], child(path, keyword))
    for keyword in _OF_NAMES:
        if keyword in schema:
            yield from _of_names(schema[keyword], child(path, keyword))


def _type_problems(schema: dict[str, Json], path: str) -> Iterator[str]:
    if "type" not in schema:
        return
    given = schema["type"]
    for each in given if isinstance(given, list) and given else [given]:
        if each not in TYPES:
            yield f"{child(path, 'type')}: there is no type {each!r}; the types are {', '.join(TYPES)}"


def _form_problems(schema: dict[str, Json], path: str) -> Iterator[str]:
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield f"{child(path, 'required')}: must be a list of names"
    if not isinstance(schema.get("enum", []), list):
        yield f"{child(path, 'enum')}: must be a list"
    for keyword in _COUNTS:
        value = schema.get(keyword, 0)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            yield f"{child(path, keyword)}: must be a whole number from 0 on"
    for keyword in _NUMBERS:
        value = schema.get(keyword, 1)
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield f"{child(path, keyword)}: must be a number"
    for keyword in _TEXTS:
        if not isinstance(schema.get(keyword, ""), str):
            yield f"{child(path, keyword)}: must be a text"


def _of_one(value: Json, keyword: str, path: str) -> Iterator[str]:
    if keyword == "items" and isinstance(value, list):  # how drafts before 2020-12 say prefixItems
        yield from _of_list(value, path)
    else:
        yield from problems(value, path)


def _of_list(value: Json, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path}: must be a list of schemas"
        return
    for place, each in enumerate(value):
        yield from problems(each, item(path, place))


def _of_names(value: Json, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: must be an object of schemas"
        return
    for name, each in value.items():
        yield from problems(each, child(path, name))


def _kind(value: Json) -> str:
    return "null" if value is None else type(value).__name__
