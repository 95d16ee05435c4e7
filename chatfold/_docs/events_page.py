"""Makes ``docs/events.md`` from the vocabulary: events with trigger, fields and what is content, and their records.

What the words mean is said by the docstrings of ``events``; this module only lays them out.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from events import contentlist, digest
from events.content import Content
from events.effects import Effects, EventBase, Interrupting
from events.envelope import Envelope
from events.levels import FIRST, LEVELS, default_of, structs_in
from events.vocabulary import EVENT_TYPES

_SHARED: Final = (Interrupting, Effects)
_PLAIN: Final = {str: "text", int: "integer", bool: "boolean", type(None): "null", Content: "**content**"}


def render() -> str:
    """Return the page."""
    records = _records()
    lines = ["# Events", "", *_introduction(), "## All events", "", *_overview(), "## Shared fields", ""]
    for cls in reversed(_SHARED):
        lines += _section(cls, cls.__name__)
    lines += ["## Events, one by one", ""]
    for event_type, event in EVENT_TYPES.items():
        lines += _section(event, event_type)
    lines += ["## Records", "", "What the fields of events hold.", ""]
    for record in records:
        lines += _section(record, record.__name__)
    return "\n".join(lines).rstrip() + "\n"


def _introduction() -> Iterator[str]:
    yield "Every transition of a chat is one event. An event has an envelope, facts, content, and a digest."
    yield ""
    yield f"- **Envelope**: {', '.join(f'`{name}`' for name in Envelope.__struct_fields__)}."
    yield "  " + _prose(Envelope).partition("\n\n")[2].replace("\n", "\n  ")
    yield "- **Facts**: the fields below as JSON; fields at their default are left out. A field marked **content**"
    yield "  holds `[place, bytes]`: its place in the content list, and the size of its value."
    yield "- **Content**: the values of these fields, in a list beside the facts, so that they can be erased alone."
    yield f"  {_indented(contentlist)}"
    yield f"- **Digest**: {_indented(digest)}"
    yield ""


def _overview() -> Iterator[str]:
    yield "| type | trigger | schema | meaning |"
    yield "| --- | --- | --- | --- |"
    for cls in EVENT_TYPES.values():
        yield f"| [`{cls.type}`](#{cls.type}) | `{cls.trigger}` | {cls.schema} | {_cell(_summary(_prose(cls)))} |"
    yield ""


def _section(cls: type[Struct], title: str) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    yield _prose(cls)
    yield ""
    base = next((shared for shared in _SHARED if issubclass(cls, shared) and cls is not shared), None)
    inherited = set(base.__struct_fields__) if base is not None else set()
    fields = [field for field in msgspec.structs.fields(cls) if field.name not in inherited]
    tag = cls.__struct_config__.tag
    notes = []
    if issubclass(cls, EventBase) and cls not in (*_SHARED,):
        notes.append(f"Trigger `{cls.trigger}`.")
    if tag is not None:
        notes.append(f"`{cls.__struct_config__.tag_field}` is `{tag}`.")
    if base is not None:
        notes.append(f"Has the fields of [{base.__name__}](#{base.__name__.lower()}) too.")
    if not fields and base is None:
        notes.append("No fields.")
    if (level := LEVELS.since(cls)) > FIRST:
        notes.append(f"From level {level} on.")
    if notes:
        yield " ".join(notes)
        yield ""
    if fields:
        yield "| field | type | default |"
        yield "| --- | --- | --- |"
        for field in fields:
            level = LEVELS.since(cls, field.name)
            known = f", from level {level} on" if level > FIRST else ""
            yield f"| `{field.name}` | {_cell(type_name(field.type))}{known} | {_default(field)} |"
        yield ""


def type_name(annotation: Any) -> str:
    """Return the type of a field in the words of the page, records as links."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if hasattr(annotation, "__supertype__"):
        return f"{annotation.__name__} ({type_name(annotation.__supertype__)})"
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(f"`{arg}`" for arg in args)
    if origin in (Union, types.UnionType):
        return " | ".join(type_name(arg) for arg in args)
    if origin is tuple:
        return f"list of {type_name(args[0])}"
    if origin is dict:
        return f"object of {type_name(args[1])}"
    if issubclass(annotation, Enum):
        return " | ".join(f"`{member.value}`" for member in annotation)
    return f"[{annotation.__name__}](#{annotation.__name__.lower()})"


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    default = default_of(field)
    if default is None:
        return ""
    if isinstance(default, Struct):
        return "empty"
    return f"`{msgspec.json.encode(default).decode()}`"


def _records() -> list[type[Struct]]:
    """Return all structs that events can hold, in the order in which they are met."""
    return [cls for cls in structs_in(*EVENT_TYPES.values()) if not issubclass(cls, EventBase)]


def _prose(cls: type) -> str:
    """Return a class's docstring as Markdown."""
    return (inspect.getdoc(cls) or "").replace("``", "`")


def _indented(module: types.ModuleType) -> str:
    """Return a module's docstring as the text of a list item."""
    return (inspect.getdoc(module) or "").replace("``", "`").replace("\n", "\n  ").replace("  \n", "\n")


def _summary(text: str | None) -> str:
    return (text or "").replace("``", "`").partition("\n\n")[0].replace("\n", " ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
