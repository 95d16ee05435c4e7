"""Arrays as PostgreSQL takes them in binary, packed column by column.

Owns the packing. The driver packs lists value by value and looks at each; a batch of appends has some thousand values
of four known types, and packing them here costs a quarter of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Any, ClassVar, Final

from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format

from store.rows import escaped

_HEAD: Final = Struct(">iiIii")
_NUMBER: Final = Struct(">iq")
_LENGTH: Final = Struct(">i")
_NULL: Final = _LENGTH.pack(-1)
_TRUE: Final = _LENGTH.pack(1) + b"\x01"
_FALSE: Final = _LENGTH.pack(1) + b"\x00"
_BIGINT_OID, _TEXT_OID, _BYTEA_OID, _BOOL_OID = 20, 25, 17, 16


class Packed(bytes):
    """A whole array, ready to be sent."""

    array_oid: ClassVar[int]


class Bigints(Packed):
    """An array of ``bigint``."""

    array_oid = 1016


class Texts(Packed):
    """An array of ``text``."""

    array_oid = 1009


class Bytes(Packed):
    """An array of ``bytea``."""

    array_oid = 1001


class Booleans(Packed):
    """An array of ``boolean``."""

    array_oid = 1000


def bigints(values: Iterable[int | None]) -> Bigints:
    """Pack numbers.

    Raises:
        OverflowError: One is beyond 64 bits.
    """
    pack = _NUMBER.pack
    return Bigints(_array(_BIGINT_OID, [_NULL if value is None else pack(8, value) for value in values]))


def texts(values: Iterable[str | None]) -> Texts:
    """Pack texts, without NUL as the database wants them (see :func:`store.rows.escaped`).

    Raises:
        UnicodeEncodeError: One has a lone surrogate.
    """
    return Texts(_array(_TEXT_OID, [_NULL if value is None else _sized(escaped(value).encode()) for value in values]))


def byte_strings(values: Iterable[bytes | None]) -> Bytes:
    """Pack byte strings."""
    return Bytes(_array(_BYTEA_OID, [_NULL if value is None else _sized(value) for value in values]))


def booleans(values: Iterable[bool]) -> Booleans:
    """Pack truth values."""
    return Booleans(_array(_BOOL_OID, [_TRUE if value else _FALSE for value in values]))


def _sized(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _array(oid: int, values: list[bytes]) -> bytes:
    # Without dimensions where it is empty; else one, counted from 1. That there may be NULLs is said always.
    if not values:
        return _HEAD.pack(0, 0, oid, 0, 0)[:12]
    return _HEAD.pack(1, 1, oid, len(values), 1) + b"".join(values)


def _dumper(kind: type[Packed]) -> type[Dumper]:
    class PackedDumper(Dumper):
        format = Format.BINARY
        oid = kind.array_oid

        def dump(self, obj: Any) -> Buffer | None:
            return bytes(obj) if not isinstance(obj, bytes) else obj

    return PackedDumper


def register(adapters: AdaptersMap) -> None:
    """Teach a connection's adapters to send packed arrays."""
    for kind in (Bigints, Texts, Bytes, Booleans):
        adapters.register_dumper(kind, _dumper(kind))
