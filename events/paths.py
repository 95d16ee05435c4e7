"""JSON paths (RFC 9535, dotted where the name allows), and a walk over structs that says where contents stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from events.content import Content

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def child(path: str, key: str) -> str:
    """Return the path of the member ``key`` of the object at ``path``."""
    if _PLAIN.match(key):
        return f"{path}.{key}"
    return f"{path}['{_escaped(key)}']"


def item(path: str, index: int) -> str:
    """Return the path of the element ``index`` of the array at ``path``."""
    return f"{path}[{index}]"


def contents(value: object, path: str = "$") -> Iterator[tuple[str, Content]]:
    """Walk a struct and yield each content in it with its path, in the order in which the codec numbers them."""
    if isinstance(value, Content):
        yield path, value
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from contents(getattr(value, name), child(path, name))
    elif isinstance(value, tuple | list):
        for index, member in enumerate(value):
            yield from contents(member, item(path, index))


def _escaped(key: str) -> str:
    """Escape as RFC 9535 section 2.7 says; surrogates too, so that the path itself can be printed."""
    return "".join(_ESCAPES.get(char) or (f"\\u{ord(char):04x}" if _hidden(char) else char) for char in key)


_ESCAPES: Final = {"'": "\\'", "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _hidden(char: str) -> bool:
    return char < " " or "\ud800" <= char <= "\udfff"
