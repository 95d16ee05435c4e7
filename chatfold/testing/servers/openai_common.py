"""What OpenAI's two protocols share: words of refusals, function schemas, errors, headers.

Owns no endpoint. Shapes are pydantic models; this module says in OpenAI's words what pydantic found wrong.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from chatfold.testing.servers.checks import STRING_BRANCHES, RequestRefused, Shape, first_error
from chatfold.testing.servers.recording import Json, RecordedRequest
from chatfold.testing.servers.script import Fail

__all__ = ["check_key", "check_schema", "error_object", "invalid", "parse", "parts_tag"]

S = TypeVar("S", bound=Shape)

_EXPECTED = {
    "string_type": "a string",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "int_type": "an integer",
    "float_type": "a decimal number",
    "bool_type": "a boolean",
}
_TAGS = ("expected_tags", "tag")
_LIMITS = {
    "too_short": (
        "empty array. Expected an array with minimum length {min_length}, but got an empty array instead.",
        "empty_array",
    ),
    "string_too_short": (
        "empty string. Expected a string with minimum length {min_length}, but got an empty string instead.",
        "empty_string",
    ),
    "string_too_long": (
        (
            "string too long. Expected a string with maximum length {max_length}, but got a string with length {size} "
            "instead."
        ),
        "string_above_max_length",
    ),
    "string_pattern_mismatch": (
        "string does not match pattern. Expected a string that matches the pattern '{pattern}'.",
        "invalid_value",
    ),
    "greater_than_equal": (
        "integer below minimum value. Expected a value >= {ge}, but got {size} instead.",
        "integer_below_min_value",
    ),
}
"""OpenAI's words and code for what pydantic calls a limit; the names in braces are pydantic's."""
_NOT_ON_TOP = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
_TYPES = {500: "server_error", 503: "server_error", 429: "requests"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error", 503: "server_error"}


def invalid(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> RequestRefused:
    """A refusal in OpenAI's shape."""
    return RequestRefused(message, status=status, param=param, code=code)


def check_key(request: RecordedRequest) -> None:
    """Check the bearer key.

    Raises:
        RequestRefused: There is none.
    """
    if not request.headers.get("authorization", "").startswith("Bearer "):
        message = "You didn't provide an API key. Provide it in an Authorization header using Bearer auth."
        raise invalid(message, status=401)


def error_object(fail: Fail) -> Json:
    """The error as it stands in a body or in a chunk."""
    usual = fail.type is None and fail.code is None and fail.param is None
    code = fail.code if fail.code is not None or not usual else _CODES.get(fail.status)
    kind = fail.type or _TYPES.get(fail.status, "invalid_request_error")
    return {"message": fail.message, "type": kind, "param": fail.param, "code": code}


def parts_tag(value: Any) -> str:
    """A pydantic tag for objects told apart by `type`; marked, so that it can be left out of a parameter's name."""
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return f"<{kind}>"


def parse(shape: type[S], body: Json) -> S:
    """Check a body's shape.

    Raises:
        RequestRefused: In OpenAI's words, for the first error.
    """
    try:
        return shape.model_validate(body)
    except ValidationError as error:
        raise _refusal(first_error(error)) from error


def _refusal(error: ErrorDetails) -> RequestRefused:
    param = _param(error["loc"])
    value, context = error["input"], error.get("ctx", {})
    match error["type"]:
        case "missing":
            text, code = f"Missing required parameter: '{param}'.", "missing_required_parameter"
        case "extra_forbidden":
            text, code = f"Unknown parameter: '{param}'.", "unknown_parameter"
        case "literal_error":
            text, code = f"Invalid value: '{value}'. Supported values are: {context['expected']}.", "invalid_value"
        case "union_tag_invalid" | "union_tag_not_found":
            tags, tag = (str(context.get(name, "")).replace("<", "").replace(">", "") for name in _TAGS)
            text, code = f"Invalid value: '{tag}'. Supported values are: {tags}.", "invalid_value"
            # Of a tool the service names the field, of an item or a part the whole.
            param += ".type" if error["loc"][0] == "tools" and isinstance(value, dict) and "type" in value else ""
        case kind if kind in _EXPECTED:
            text = f"Invalid type for '{param}': expected {_EXPECTED[kind]}, but got {_name(value)} instead."
            code = "invalid_type"
        case kind if kind in _LIMITS:
            words, code = _LIMITS[kind]
            text = f"Invalid '{param}': " + words.format(
                size=len(value) if isinstance(value, str) else value, **context
            )
        case _:
            text, code = f"Invalid value for '{param}': {error['msg']}.", "invalid_value"
    return invalid(text, param, code)


def _param(steps: Sequence[int | str]) -> str:
    name = ""
    for step in steps:
        if isinstance(step, int):
            name += f"[{step}]"
        elif not (step.startswith(("<", "list[")) or step in STRING_BRANCHES):
            name += f".{step}" if name else step
    return name


def _name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def check_schema(name: str, schema: Json | None, param: str, *, strict: bool) -> None:
    """Check the schema of a function's parameters.

    Raises:
        RequestRefused: It describes no object, its `required` is no list, or it is not as strict as it claims to be.
    """
    if schema is None:
        return
    problem = ""
    if schema.get("type") != "object":
        kind = "None" if schema.get("type") is None else str(schema["type"])
        problem = f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    elif not _NOT_ON_TOP.isdisjoint(schema):
        problem = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
    elif not isinstance(schema.get("properties"), dict):
        problem = "In context=(), object schema missing properties."
    elif "required" in schema and not isinstance(schema["required"], list):
        problem = f"{schema['required']!r} is not of type 'array'."
    elif (place := _array_without_items(schema, ())) is not None:
        problem = f"In context={place!r}, array schema missing items."
    elif strict and schema.get("additionalProperties") is not False:
        problem = "In context=(), 'additionalProperties' is required to be supplied and to be false."
    elif strict and set(schema["properties"]) != set(schema.get("required", [])):
        problem = (
            "In context=(), 'required' is required to be supplied and to be an array including every key in properties."
        )
    if problem:
        message = f"Invalid schema for function '{name}': {problem}"
        raise invalid(message, param, "invalid_function_parameters")


def _array_without_items(schema: object, place: tuple[str, ...]) -> tuple[str, ...] | None:
    """Where the schema has an array that does not say what it holds."""
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "array" and "items" not in schema:
        return place
    inner: list[tuple[tuple[str, ...], object]] = [
        (("properties", name), child) for name, child in (schema.get("properties") or {}).items()
    ]
    inner.append((("items",), schema.get("items")))
    found = (_array_without_items(child, (*place, *steps)) for steps, child in inner)
    return next((deeper for deeper in found if deeper is not None), None)
