"""Files that tools and clients give with a result: from what a program has to parts that can be stored. Pure.

What a service takes of a file, and what stands for one that it does not take, is the wire formats' matter
(``generation.providers.files``).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from events.cutting import truncate
from events.parts import FilePart
from generation.media import disagreement, is_media_type
from generation.providers.files import is_text
from generation.repair import short_text

MOST_BYTES: Final = 10 << 20
"""Bytes that the files of one result may have together: with base64 a message still holds them."""

MOST_FILES: Final = 100
"""Files of one result."""


@dataclass(frozen=True, slots=True)
class ToolFile:
    """A file that a tool, or the client, gives with a result.

    A PNG, JPEG, GIF, WebP or PDF must be what it says that it is: services read the bytes. One that is not is left out
    of a tool's result, which says so, and refused of a client.

    Attributes:
        data: Its bytes, or these as base64 text.
        media_type: Such as ``image/png``.
        name: Its name, where it has one.
    """

    data: bytes | bytearray | memoryview | str
    media_type: str
    name: str | None = None


class Files(Struct, frozen=True, kw_only=True):
    """Files as they are stored.

    ``notes`` are words on those that were left out, for the model to read; ``room`` is what is left of the budget.
    """

    media: tuple[FilePart, ...] = ()
    attachments: tuple[FilePart, ...] = ()
    notes: tuple[str, ...] = ()
    room: int = 0


class _LeftOut(Exception):
    """A file that cannot be kept; says why."""


def files_of(media: Iterable[object], attachments: Iterable[object], room: int) -> Files:
    """Return files as parts; one that cannot be kept is left out, and said to be.

    Args:
        media: ``ToolFile`` for the model to see.
        attachments: ``ToolFile`` for people.
        room: Bytes that are left of the result's budget. Texts among ``media`` count, since the model reads them as
            text, and are cut to it; images and documents do not: what they take of a context is not their bytes.
    """
    total, kept, full, notes = 0, 0, False, []
    made: tuple[list[FilePart], list[FilePart]] = ([], [])
    for shown, files in ((True, media), (False, attachments)):
        for file in files:
            try:
                data, media_type, name = _read(file)
                total, kept = total + len(data), kept + 1
                if total > MOST_BYTES or kept > MOST_FILES:
                    total, kept = total - len(data), kept - 1
                    limit = f"{MOST_FILES} files, {MOST_BYTES} bytes"
                    raise _LeftOut(f"{_called(media_type, name)} is left out: a result takes at most {limit}")
                if shown and is_text(media_type):
                    if full or room <= 0:
                        raise _LeftOut(f"{_called(media_type, name)} is left out: the result is too long with it")
                    full = len(data) > room
                    data = _cut(data, room)
                    room -= len(data)
            except _LeftOut as why:
                notes.append(str(why))
                continue
            made[not shown].append(FilePart.of(data, media_type, name))
    return Files(media=tuple(made[0]), attachments=tuple(made[1]), notes=tuple(notes), room=room)


def _read(file: object) -> tuple[bytes, str, str | None]:
    """Return bytes, type and name of a file."""
    if not isinstance(file, ToolFile):
        raise _LeftOut(f"a file is left out: it is a {type(file).__name__}, not a ToolFile")
    given: object = file.media_type
    media_type = given.strip().lower() if isinstance(given, str) else ""
    name = short_text(file.name)[0] or None if isinstance(file.name, str) else None
    if not is_media_type(media_type):
        raise _LeftOut(f"a file is left out: its media type is not one, such as image/png, but {str(given)[:100]!r}")
    try:
        data = _bytes_of(file.data)
    except _LeftOut as why:
        raise _LeftOut(f"{_called(media_type, name)} is left out: {why}") from None
    wrong = disagreement(media_type, data)
    if wrong is not None:
        raise _LeftOut(f"{_called(media_type, name)} is left out: {wrong}")
    return data, media_type, name


def _bytes_of(data: object) -> bytes:
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    if not isinstance(data, str):
        raise _LeftOut(f"its data are {type(data).__name__}, not bytes")
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        raise _LeftOut("its data are a text that is not base64") from None


def _cut(data: bytes, room: int) -> bytes:
    return data if len(data) <= room else truncate(data.decode("utf-8", "replace"), room).encode()


def _called(media_type: str, name: str | None) -> str:
    return f"the file {name!r} ({media_type})" if name else f"a file of type {media_type}"
