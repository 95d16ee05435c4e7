"""The declaration of a tool as models see it, and how it changed, in words: its description, its arguments. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

_ARGUMENTS: Final = ("properties", "required")


class DeclaredTool(Struct, frozen=True, kw_only=True):
    """A tool as models see it; as :class:`generation.prompt_types.ToolSpec`, in a form that can be read back."""

    name: str
    description: str
    schema: dict[str, Any]


def declaration_changes(then: DeclaredTool, now: DeclaredTool) -> Iterator[str]:
    """Yield what a model is told otherwise of a tool."""
    if then.description != now.description:
        yield "another description"
    before, after = _properties(then.schema), _properties(now.schema)
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"argument {name} is gone"
        elif name not in before:
            yield f"argument {name} is new"
        elif before[name] != after[name]:
            yield f"argument {name} is another one"
    was, is_now = _required(then.schema), _required(now.schema)
    for name in sorted((was ^ is_now) & before.keys() & after.keys()):
        yield f"argument {name} {'has to be given now' if name in is_now else 'may be left out now'}"
    if _rest(then.schema) != _rest(now.schema):
        yield "other rules for its arguments"


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _required(schema: Mapping[str, Any]) -> set[str]:
    found = schema.get("required")
    return set(found) if isinstance(found, list) else set()


def _rest(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in _ARGUMENTS}
