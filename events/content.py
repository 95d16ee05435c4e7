"""Content: what people and models read, kept apart from the facts that fold and decision read.

A field of type :class:`Content` holds text, tool arguments, tool results, file bytes and names, error messages or
titles. The codec takes these values out of the event, so that a log without its content still folds to the same state.
What a content field says in the facts is its place in the event's content list and its size; reading a value that was
not loaded or was erased raises :class:`ContentUnavailable`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias, final

import msgspec

from events.errors import ContentUnavailable

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
"""What a content value may be: text, or plain JSON data."""


class Absent(Enum):
    """Why a content has no value."""

    NOT_LOADED = "not loaded"
    ERASED = "erased"


_SHARED: Final = 2048
_SIZES: Final = list(range(_SHARED))


@final
class Content:
    """A value that people and models read, or the place where it was.

    Args:
        value: The text or JSON data; an :class:`Absent` where it is not at hand.
        size: Bytes of the value: UTF-8 bytes of a text, bytes of the JSON encoding of anything else. Computed when a
        value is given.

    Raises:
        UnicodeEncodeError: The text holds a lone surrogate (``events.values`` checks and repairs before).
    """

    __slots__ = ("held", "size")

    size: int

    def __init__(self, value: Json | Absent, size: int | None = None) -> None:
        self.held: Final = value
        if size is None:
            size = 0 if isinstance(value, Absent) else size_of(value)
        # Most sizes are small, and a loaded chat has one for each content: they are shared.
        self.size = _SIZES[size] if 0 <= size < _SHARED else size

    @property
    def available(self) -> bool:
        """Whether the value is at hand."""
        return not isinstance(self.held, Absent)

    @property
    def erased(self) -> bool:
        """Whether the value was erased from the log."""
        return self.held is Absent.ERASED

    @property
    def value(self) -> Json:
        """The value.

        Raises:
            ContentUnavailable: It was not loaded, or it was erased.
        """
        if isinstance(self.held, Absent):
            raise ContentUnavailable(self.held.value)
        return self.held

    @property
    def text(self) -> str:
        """The value where it is a text.

        Raises:
            ContentUnavailable: It was not loaded, or it was erased.
            TypeError: It is not a text.
        """
        value = self.value
        if not isinstance(value, str):
            msg = f"this content is {type(value).__name__}, not text"
            raise TypeError(msg)
        return value

    def __eq__(self, other: object) -> bool:
        """Two contents are equal when both their values (or why these are absent) and their sizes are."""
        if not isinstance(other, Content):
            return NotImplemented
        if self.size != other.size or self.held != other.held:
            return False
        # Only what is no text can be equal for Python and yet differ.
        return isinstance(self.held, str | Absent) or same_json(self.held, other.value)

    def __hash__(self) -> int:
        """Hash by size: values may be unhashable."""
        return hash(self.size)

    def __repr__(self) -> str:
        """Show the size alone: no content leaks into diagnostics."""
        return f"Content(<{self.held.value if isinstance(self.held, Absent) else 'value'}, {self.size} B>)"


def same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON, where Python holds ``1``, ``1.0`` and ``True`` equal.

    The order of an object's members does not matter.
    """
    encode = msgspec.json.encode
    return one == other and encode(one, order="deterministic") == encode(other, order="deterministic")


def size_of(value: Json) -> int:
    """Return the size of a content value in bytes, as :class:`Content` counts it."""
    return len(value.encode()) if isinstance(value, str) else len(msgspec.json.encode(value))
