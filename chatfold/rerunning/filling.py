"""Contents that a log does not have any more: what stands in for them, so that the engine has something to work on.

A filler has the size of what was there, which is all that facts say of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from events.content import Content
from events.envelope import Recorded
from events.parts import ToolCallPart

_T = TypeVar("_T")

_OBJECT: Final = "{}"


def filled(recorded: Recorded) -> Recorded:
    """Return an event with all of its contents at hand; the same one where they are."""
    event = _filled(recorded.event)
    return recorded if event is recorded.event else Recorded(recorded.envelope, event)


def lacking(log: Iterable[Recorded]) -> tuple[int, int]:
    """Return how many contents were erased, and how many were not packed with the log."""
    absent = [content for recorded in log for content in _contents(recorded.event) if not content.available]
    erased = sum(content.erased for content in absent)
    return erased, len(absent) - erased


def _contents(value: object) -> Iterable[Content]:
    match value:
        case Content():
            yield value
        case tuple():
            for each in value:
                yield from _contents(each)
        case Struct():
            for name in value.__struct_fields__:
                yield from _contents(getattr(value, name))
        case _:
            return


def _filled(value: _T) -> _T:
    match value:
        case Content():
            return cast(_T, value if value.available else Content("x" * value.size))
        case tuple():
            new = tuple(_filled(each) for each in value)
            return value if all(one is other for one, other in zip(new, value, strict=True)) else cast(_T, new)
        case Struct():
            changed: dict[str, Any] = {}
            for name in value.__struct_fields__:
                old = getattr(value, name)
                if (each := _arguments(value, name, old) or _filled(old)) is not old:
                    changed[name] = each
            return cast(_T, replace(value, **changed)) if changed else value
        case _:
            return value


def _arguments(part: Struct, name: str, content: object) -> Content | None:
    """Return what stands in for a call's arguments, which are the text of an object; None for all else."""
    if not isinstance(part, ToolCallPart) or name != "arguments":
        return None
    if not isinstance(content, Content) or content.available or content.size < len(_OBJECT):
        return None
    return Content(_OBJECT.ljust(content.size))
