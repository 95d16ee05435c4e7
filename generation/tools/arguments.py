"""From the JSON text that a model gave to the arguments of a function, or to words that say what is wrong. Pure."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from events.content import Json, same_json
from events.errors import InvalidValue
from events.paths import child, item
from events.values import parse_json_strict
from generation.foreign import contained, words_of
from generation.tools.contract import Tool
from generation.tools.registry import NO_TOOL, NOT_TAKEN, CallRefused, ToolSet

_MOST: Final = 10
_GONE: Final = "The arguments of this call were erased, and the tool was not run without them."


def read_arguments(text: str | None) -> dict[str, Json]:
    """Return the arguments of a call as whoever asks about it is told them, and as the tool is given them.

    Args:
        text: JSON text as the model gave it. Blank counts as an object without members: some models write no arguments
            so. None, for arguments that are gone, does not: what they said is not known.

    Raises:
        CallRefused: They are gone, not JSON, or not an object; the text names the place.
    """
    if text is None:
        raise CallRefused(_GONE)
    try:
        value = parse_json_strict(_filled(text))
    except InvalidValue as error:
        raise CallRefused(f"{NOT_TAKEN}{error}") from None
    if not isinstance(value, dict):
        raise CallRefused(f"{NOT_TAKEN}$: must be a JSON object")
    return value


def same_arguments(one: str, other: str) -> bool:
    """Whether a tool is given the same by two JSON texts."""
    try:
        return same_json(read_arguments(one), read_arguments(other))
    except CallRefused:
        return False


def _filled(text: str) -> str:
    return text if text.strip() else "{}"


def parse_arguments(tool: Tool, text: str | None) -> dict[str, Any]:
    """Return the validated arguments of a call, by parameter name.

    Args:
        tool: The tool called. Where its schema was given as JSON, the arguments are an object of any content.
        text: See ``read_arguments``.

    Raises:
        CallRefused: As there; or they are not what the tool takes, and the text names each place.
    """
    value = read_arguments(text)
    if tool.arguments is None or text is None:
        return value
    try:
        with contained():
            taken = validated(tool, text)
    except ValidationError as error:
        raise CallRefused(NOT_TAKEN + _explain(error.errors(include_url=False, include_context=False))) from None
    except Exception as error:
        raise CallRefused(f"{NOT_TAKEN}{words_of(error)}") from error
    if tool.function is None:
        _refuse_unknown(tool, value)
        return value
    return taken


def validated(tool: Tool, text: str) -> dict[str, Any]:
    """Return what a tool's own validation makes of arguments.

    Raises:
        ValidationError: They are not what it takes.
    """
    if tool.arguments is None:
        return read_arguments(text)
    # From the text, not from its value: dates, bytes and the like are read by the rules for JSON. A client gets what
    # the model wrote, so that is held to the letter of what the model was told.
    taken: dict[str, Any] = tool.arguments.validate_json(_filled(text), strict=True if tool.function is None else None)
    return taken


def _refuse_unknown(tool: Tool, value: dict[str, Json]) -> None:
    known = tool.schema["properties"]
    if tool.schema.get("additionalProperties") is not False or not isinstance(known, dict):
        return
    unknown = [child("$", name) for name in value if name not in known]
    if unknown:
        raise CallRefused(NOT_TAKEN + "; ".join(f"{place}: there is no such argument" for place in unknown[:_MOST]))


def arguments_problem(tool: Tool, text: str) -> str | None:
    """Return why a tool does not take arguments, with each place; None where it takes them."""
    try:
        parse_arguments(tool, text)
    except CallRefused as refusal:
        return str(refusal).removeprefix(NOT_TAKEN)
    return None


def was_unfit(output: str) -> bool:
    """Whether a result says that its call was refused for its arguments, or since there was no such tool."""
    return output.startswith((NOT_TAKEN, *NO_TOOL))


def fits(tools: ToolSet, name: str, text: str) -> bool:
    """Whether a call can run as far as its arguments go: there is a tool of this name, and it takes them."""
    try:
        return arguments_problem(tools.find(name), text) is None
    except CallRefused:
        return False


def _explain(errors: list[ErrorDetails]) -> str:
    lines = [f"{_path(error['loc'])}: {error['msg']}" for error in errors[:_MOST]]
    if len(errors) > _MOST:
        lines.append(f"and {len(errors) - _MOST} more")
    return "; ".join(lines)


def _path(location: tuple[int | str, ...]) -> str:
    path = "$"
    for step in location:
        path = item(path, step) if isinstance(step, int) else child(path, step)
    return path
