"""What a test writes down for a server is looked at where it stands: fields and arguments have what their types say.

Owns the check and the words of its errors.
"""

from collections.abc import Sequence
from dataclasses import fields
from types import UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

__all__ = ["Written", "check_fields", "checked"]

T = TypeVar("T")


class Written:
    """A dataclass whose fields are checked when it is made.

    Raises:
        TypeError: A field has what it cannot have.
        ValueError: A number is negative.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the fields."""
        check_fields(self)


def check_fields(written: Any) -> None:
    """Check the fields of a dataclass whose annotations are types, and whose numbers count or measure something.

    Raises:
        TypeError: A field has what it cannot have.
        ValueError: A number is negative, or none.
    """
    for field in fields(written):
        checked(getattr(written, field.name), field.type, f"{type(written).__name__}.{field.name}")


def checked(value: T, kind: Any, name: str) -> T:
    """Return what is of a type, such as ``str | None``, a ``Literal``, or ``Sequence[Part]``.

    Raises:
        TypeError: It is of another.
        ValueError: A number is negative, or none.
    """
    if not _fits(value, kind):
        message = f"{name} must be {_called(kind)}, not {value!r:.80}"
        raise TypeError(message)
    if isinstance(value, int | float) and not value >= 0:
        message = f"{name} must not be negative: {value}"
        raise ValueError(message)
    return value


def _fits(value: object, kind: Any) -> bool:
    origin, within = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in within)
    if origin is Literal:
        return value in within
    if origin is Sequence:
        return isinstance(value, list | tuple) and all(_fits(each, within[0]) for each in value)
    if origin in (int, float):
        return isinstance(value, int | origin) and not isinstance(value, bool)
    return isinstance(value, origin)


def _called(kind: Any) -> str:
    origin, within = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(map(_called, within))
    if origin is Literal:
        return f"one of {', '.join(map(str, within))}"
    if origin is Sequence:
        return f"a list of {_called(within[0])}"
    return _WORDS.get(origin, str(origin.__name__))


_WORDS: Final[dict[Any, str]] = {
    type(None): "None",
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
}
