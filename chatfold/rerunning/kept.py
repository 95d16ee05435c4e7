"""Files that are kept beside logs: JSON with the number of its form. How they are read and written, and refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from events.given import checked_kind

_T = TypeVar("_T", bound=Struct)

KeptKind: TypeAlias = Literal["sections", "declarations"]

FORM: Final = 1
"""The form of these files that is known here; it stands in them under ``chatfold_`` and their kind."""

_LOOKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "chatfold_sections": "it looks like a file of sections: `chatfold rerun --sections` takes it",
        "chatfold_declarations": "it looks like a file of declarations: `chatfold rerun` finds it by itself, "
        "as declarations.json in the folder of a log",
        "chatfold_log": "it looks like a log: `chatfold rerun` takes it without an option",
    }
)
"""What a file has -> what it looks like, and what takes it."""
_NAMED: Final = 3
"""Members of an unknown object that are named."""


class KeptFileError(ValueError):
    """A file is not of the kind that it is taken for, or cannot be read; the text says which, and why."""


def read_kept(path: Path, kind: KeptKind, shape: type[_T]) -> _T:
    """Return what a file holds.

    Args:
        path: The file.
        kind: What it is to be.
        shape: What is made of it.

    Raises:
        KeptFileError: It cannot be read, is no JSON, or another one, or of another form or shape.
        InvalidValue: It is no path.
    """
    checked_kind(path, Path, "$.path", "a Path")
    wanted = f"{path} is no file of {kind}"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KeptFileError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        found = _decoded(data)
    except ValueError as error:
        raise KeptFileError(f"{wanted}: {_look(_first_line(data)) or f'it is no JSON: {error}'}") from None
    key = f"chatfold_{kind}"
    if not isinstance(found, dict) or key not in found:
        raise KeptFileError(f"{wanted}: {_look(found) or _unknown(found, key)}")
    if type(found[key]) is not int or found[key] != FORM:
        raise KeptFileError(f"{path} is a file of {kind} of form {found[key]!r}; {FORM} is known here")
    try:
        return msgspec.convert(found, shape)
    except msgspec.ValidationError as error:
        raise KeptFileError(f"{wanted}: {error}") from None


def write_kept(path: Path, kept: Struct) -> None:
    """Write a file, the same bytes for the same content.

    Raises:
        InvalidValue: It is no path.
        OSError: It cannot be written.
    """
    checked_kind(path, Path, "$.path", "a Path")
    path.write_text(pretty(kept) + "\n", encoding="utf-8")


def pretty(value: object) -> str:
    """Return a value as JSON that people read and compare line by line."""
    return json.dumps(msgspec.to_builtins(value), indent=1, sort_keys=True, ensure_ascii=False)


def _decoded(data: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: It is none, or too deep.
    """
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _first_line(data: bytes) -> object:
    try:
        return _decoded(data.partition(b"\n")[0])
    except ValueError:
        return None


def _look(found: object) -> str | None:
    """Return what a file looks like by what it has; None where it is none of ours."""
    return next((look for key, look in _LOOKS.items() if key in found), None) if isinstance(found, dict) else None


def _unknown(found: object, key: str) -> str:
    if not isinstance(found, dict):
        return f"it has to be an object with {key!r}, and is {'a list' if isinstance(found, list) else 'a plain value'}"
    names = [repr(name) for name in list(found)[:_NAMED]]
    more = ", ..." if len(found) > _NAMED else ""
    return f"it has no {key!r}, but {', '.join(names) + more if names else 'nothing at all'}"
