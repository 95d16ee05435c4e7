"""Arrays as PostgreSQL takes them in binary, packed column by column.

Owns the packing. The driver packs lists value by value and looks at each; a batch of appends has some thousand values
of four known types, and packing them here costs a quarter of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is named as errors are, but in small letters
from typing import Final

from store.rows import escaped

_HEAD: Final = Struct(">iiIii")
_NUMBER: Final = Struct(">iq")
_LENGTH: Final = Struct(">i")
_NULL: Final = _LENGTH.pack(-1)
_TRUE: Final = _LENGTH.pack(1) + b"\x01"
_FALSE: Final = _LENGTH.pack(1) + b"\x00"
_BIGINT_OID, _TEXT_OID, _BYTEA_OID, _BOOL_OID = 20, 25, 17, 16


def bigints(values: Iterable[int | None]) -> bytes:
    """Pack numbers.

    Raises:
        OverflowError: One is beyond 64 bits.
    """
    pack = _NUMBER.pack
    try:
        return _array(_BIGINT_OID, [_NULL if value is None else pack(8, value) for value in values])
    except StructError as error:
        raise OverflowError(str(error)) from error


def texts(values: Iterable[str | None]) -> bytes:
    """Pack texts, without NUL as the database wants them (see :func:`store.rows.escaped`).

    Raises:
        UnicodeEncodeError: One has a lone surrogate.
    """
    return _array(_TEXT_OID, list(map(_sized_text, values)))


def byte_strings(values: Iterable[bytes | None]) -> bytes:
    """Pack byte strings."""
    return _array(_BYTEA_OID, [_NULL if value is None else _sized(value) for value in values])


def booleans(values: Iterable[bool]) -> bytes:
    """Pack truth values."""
    return _array(_BOOL_OID, [_TRUE if value else _FALSE for value in values])


@lru_cache(maxsize=4096)
def _sized_text(value: str | None) -> bytes:
    # Most texts of a batch are the same few, and each id stands in it several times.
    return _NULL if value is None else _sized(escaped(value).encode())


def _sized(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _array(oid: int, values: list[bytes]) -> bytes:
    # Without dimensions where it is empty; else one, counted from 1. That there may be NULLs is said always.
    if not values:
        return _HEAD.pack(0, 0, oid, 0, 0)[:12]
    return _HEAD.pack(1, 1, oid, len(values), 1) + b"".join(values)


def bigint(value: int | None) -> bytes | None:
    """Return one number as it is sent.

    Raises:
        OverflowError: It is beyond 64 bits.
    """
    return None if value is None else value.to_bytes(8, "big", signed=True)


def text(value: str | None) -> bytes | None:
    """Return one text as it is sent.

    Raises:
        UnicodeEncodeError: It has a lone surrogate.
    """
    return None if value is None else escaped(value).encode()


def boolean(value: bool) -> bytes:  # noqa: FBT001 - the value itself
    """Return one truth value as it is sent."""
    return b"\x01" if value else b"\x00"


def byte_string(value: bytes | None) -> bytes | None:
    """Return bytes as they are sent."""
    return value


def number_of(value: bytes | None) -> int | None:
    """Return a number as it was received."""
    return None if value is None else int.from_bytes(value, "big", signed=True)
