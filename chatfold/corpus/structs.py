"""Structs of ours field by field: which of them say something, and what they say without any content. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from events.content import Absent, Content
from events.shared import SharedSequence

_DIGITS: Final = 8
"""Hexadecimal digits that tell one content from another: in a corpus nobody looks for two that have the same."""


@cache
def defaults_of(kind: type[Struct]) -> Mapping[str, Any]:
    """Return the fields of a struct that have a default, with it."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.default is not msgspec.NODEFAULT:
            found[field.name] = field.default
        elif field.default_factory is not msgspec.NODEFAULT:
            found[field.name] = field.default_factory()
    return found


def filled(value: Struct) -> Iterator[str]:
    """Yield the fields that have another value than their default; such as need one are not looked at."""
    yield from (name for name, default in defaults_of(type(value)).items() if getattr(value, name) != default)


def facts_of(value: object) -> Any:
    """Return a value as JSON data: what has its default is left out, a content is its size and a digest.

    Whether a default is written is no matter of identity here, as it is for an encoder: the same value gives the same
    data, however it was made.
    """
    match value:
        case Content():
            return _of_content(value)
        case Struct():
            return dict(_of_struct(value))
        case Mapping():
            return {str(key): facts_of(each) for key, each in value.items()}
        case tuple() | list() | SharedSequence():
            return [facts_of(each) for each in value]
        case Enum():
            return value.value
        case _:
            return value


def digest_of_facts(value: object) -> str:
    """Return a short digest of what ``facts_of`` gives."""
    return _short(msgspec.json.encode(facts_of(value), order="sorted"))


def _of_struct(value: Struct) -> Iterator[tuple[str, Any]]:
    config, defaults = value.__struct_config__, defaults_of(type(value))
    if config.tag is not None:
        yield config.tag_field or "type", config.tag
    for name in value.__struct_fields__:
        said = getattr(value, name)
        if name not in defaults or said != defaults[name]:
            yield name, facts_of(said)


def _of_content(content: Content) -> str:
    held = content.held
    told = held.value if isinstance(held, Absent) else _short(msgspec.json.encode(held, order="sorted"))
    return f"{content.size} B, {told}"


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGITS]
