"""Releases that know less: stand-ins for the types of events, made by leaving out what a table says came later.

They refuse what they do not know, as the real ones do: an unknown field, kind of part, or record.
"""

from __future__ import annotations

from types import GenericAlias, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from events.content import Content
from events.levels import Levels

_NOTHING = Literal["no value of this type is known"]


def _size(content: object) -> int:
    assert isinstance(content, Content)
    return content.size


def stored(value: Struct) -> bytes:
    """Return a value as JSON; a content is its size."""
    return msgspec.json.encode(value, enc_hook=_size)


class Release:
    """A release of a level, under a table of what came when."""

    def __init__(self, levels: Levels, level: int) -> None:
        self._levels = levels
        self._level = level
        self._known: dict[type[Struct], Any] = {}

    def reads(self, value: Struct) -> bool:
        """Whether it can read what this release stores of a value."""
        known = self._type(type(value))
        if known is None:
            return False
        try:
            msgspec.json.decode(stored(value), type=known)
        except msgspec.ValidationError:
            return False
        return True

    def _type(self, annotation: Any) -> Any:
        """Return the type as it knows it; None where it does not."""
        origin, args = get_origin(annotation), get_args(annotation)
        if annotation is Content:
            return int
        if isinstance(annotation, type) and issubclass(annotation, Struct):
            return self._struct(annotation) if self._levels.since(annotation) <= self._level else None
        if origin in (Union, UnionType):
            known = [each for arg in args if (each := self._type(arg)) is not None]
            return Union[tuple(known)] if known else None  # noqa: UP007 - of members that are known at run time
        if origin is tuple:
            return GenericAlias(tuple, (self._type(args[0]) or _NOTHING, ...))
        if origin is dict:
            return GenericAlias(dict, (args[0], self._type(args[1]) or _NOTHING))
        return annotation

    def _struct(self, cls: type[Struct]) -> Any:
        if cls not in self._known:
            fields: list[Any] = []
            for field in msgspec.structs.fields(cls):
                if self._levels.since(cls, field.name) <= self._level:
                    known = self._type(field.type) or _NOTHING
                    fields.append((field.name, known) if field.required else (field.name, known, None))
            config = cls.__struct_config__
            self._known[cls] = msgspec.defstruct(
                cls.__name__,
                fields,
                tag=config.tag,
                tag_field=config.tag_field,
                kw_only=True,
                forbid_unknown_fields=config.forbid_unknown_fields,
            )
        return self._known[cls]


def may_be_new(cls: type[Struct]) -> list[type[Struct] | tuple[type[Struct], str]]:
    """Return what a table can say of a type: that it came later, or a field of it that may be left out."""
    return [cls, *((cls, field.name) for field in msgspec.structs.fields(cls) if not field.required)]
