"""What a file says that it is, held against its bytes. Pure.

Services read the first bytes themselves and refuse a request in which type and bytes disagree. Such a file in a chat's
history would fail each turn from then on, so it is found where it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.ASCII)
_LONGEST_TYPE: Final = 127

_PDF_WITHIN: Final = 1024
"""Bytes within which the header of a PDF begins: readers have always allowed for something before it."""

_SIGNS: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "image/png": lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": lambda data: data.startswith(b"\xff\xd8\xff"),
    "image/gif": lambda data: data.startswith((b"GIF87a", b"GIF89a")),
    "image/webp": lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP",
    "application/pdf": lambda data: b"%PDF-" in data[:_PDF_WITHIN],
}
"""How the files begin that services read: the images that all of them take, and PDF. Other types are not looked at."""


def is_media_type(text: str) -> bool:
    """Whether a text is a media type in lower case, without parameters, such as ``image/png``."""
    return len(text) <= _LONGEST_TYPE and _TYPE.fullmatch(text) is not None


def disagreement(media_type: str, data: bytes) -> str | None:
    """Return what is wrong with a file whose bytes are not of its type; None where they are, or where nobody looks."""
    sign = _SIGNS.get(media_type)
    if sign is None or sign(data):
        return None
    if not data:
        return f"it is empty, which no {media_type} is"
    other = next((name for name, begins in _SIGNS.items() if begins(data)), None)
    return f"its bytes are {other}, not {media_type}" if other is not None else f"its bytes are no {media_type}"
