"""From the JSON text that a model gave to the arguments of a function, or to words that say what is wrong. Pure."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from events.errors import InvalidValue
from events.paths import child, item
from events.values import parse_json_strict
from generation.tools.contract import Tool
from generation.tools.registry import CallRefused

_MOST: Final = 10
_REFUSED: Final = "The arguments are not valid, so the tool was not run: "
_GONE: Final = "The arguments of this call were erased, and the tool was not run without them."


def parse_arguments(tool: Tool, text: str | None) -> dict[str, Any]:
    """Return the validated arguments of a call, by parameter name.

    Args:
        tool: The tool called. Where its schema was given as JSON, the arguments are an object of any content.
        text: JSON text as the model gave it. Blank counts as an object without members: some models write no arguments
            so. None, for arguments that are gone, does not: what they said is not known.

    Raises:
        CallRefused: They are gone, not JSON, not an object, or not what the tool takes; the text names each place.
    """
    if text is None:
        raise CallRefused(_GONE)
    text = text if text.strip() else "{}"
    try:
        value = parse_json_strict(text)
    except InvalidValue as error:
        raise CallRefused(f"{_REFUSED}{error}") from None
    if not isinstance(value, dict):
        raise CallRefused(f"{_REFUSED}$: must be a JSON object")
    if tool.arguments is None:
        return value
    try:
        # From the text once more, not from the value: dates, bytes and the like are read by the rules for JSON.
        return tool.arguments.validate_json(text)
    except ValidationError as error:
        raise CallRefused(_REFUSED + _explain(error.errors(include_url=False, include_context=False))) from None
    except Exception as error:
        raise CallRefused(f"{_REFUSED}{type(error).__name__}: {error}") from error


def arguments_problem(tool: Tool, text: str) -> str | None:
    """Return why a tool does not take arguments, with each place; None where it takes them."""
    try:
        parse_arguments(tool, text)
    except CallRefused as refusal:
        return str(refusal).removeprefix(_REFUSED)
    return None


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
