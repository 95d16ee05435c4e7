"""Contents as they are stored, replaced: a text by words, JSON by JSON of the same form, a file by a file.

What is replaced is the JSON of a stored content, and what comes out is again: of a text the size in UTF-8 stays, of
other JSON every byte but those of its texts and numbers. A text that is JSON by itself (the arguments of a call)
stays JSON of the same form. Names of fields are texts too, but for those that the rules leave. So what a provider
wants back is no longer taken for its own by anybody, and no prompt brings it. Pure.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, Literal, TypeAlias, final

import msgspec

from chatfold.redacting.errors import RedactionError
from chatfold.redacting.numbers import NUMBER, Numbers
from chatfold.redacting.streams import Streams
from chatfold.redacting.words import Words, is_json

Form: TypeAlias = Literal["text", "file"]
"""What a content is taken for: text or JSON, or the bytes of a file in base64."""

_TOKEN: Final = re.compile(rf'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"(?P<colon>\s*:)?|(?P<number>{NUMBER})')
_BEGINS_JSON: Final = re.compile(r'\s*[\[{"\-0-9tfn]')

_SIGNS: Final = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"%PDF-")
"""How files begin that models read; services refuse a file that begins otherwise."""
_MOST_OF_FILE: Final = 4096
"""Attempts to find bytes that no other file got: of one byte there are few."""


def sign_of(data: bytes) -> bytes:
    """Return what a file of a known type begins with; nothing of any other."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return data[:12]
    return next((sign for sign in _SIGNS if data.startswith(sign)), b"")


@final
class Contents:
    """Replacements of the contents of one log.

    Args:
        streams: Where they come from.
        keep_keys: Names of fields that stay.
        avoid: Finds what must not be in a text or a number.
    """

    __slots__ = ("_files", "_keep", "_numbers", "_streams", "_used_files", "_words")

    def __init__(self, streams: Streams, keep_keys: frozenset[str], avoid: re.Pattern[str] | None = None) -> None:
        self._streams: Final = streams
        self._keep: Final = keep_keys
        self._words: Final = Words(streams, keep_keys, avoid)
        self._numbers: Final = Numbers(streams, avoid)
        self._files: Final[dict[str, str]] = {}
        self._used_files: Final[set[str]] = set()

    def replace(self, value: bytes, form: Form) -> bytes:
        """Return the JSON that stands for a content's.

        Raises:
            msgspec.MsgspecError: It is no JSON.
            RedactionError: There are not enough texts or numbers to tell all apart.
        """
        if value[:1] != b'"':
            return self._json(value.decode()).encode()
        text: str = msgspec.json.decode(value)
        replaced = self._file(text) if form == "file" else None
        return msgspec.json.encode(self._text(text) if replaced is None else replaced)

    def _text(self, text: str) -> str:
        if _BEGINS_JSON.match(text) and is_json(text):
            return self._json(text)
        return self._words.replace(text)

    def _json(self, text: str) -> str:
        return _TOKEN.sub(self._token, text)

    def _token(self, match: re.Match[str]) -> str:
        number, raw, colon = match["number"], match["text"], match["colon"]
        if number is not None:
            return self._numbers.replace(number)
        said: str = msgspec.json.decode(f'"{raw}"')
        stays = not said.strip() or (colon is not None and said in self._keep)
        return match[0] if stays else f'"{self._words.replace(said, len(raw.encode()))}"{colon or ""}'

    def _file(self, text: str) -> str | None:
        """Return other bytes in base64, with the sign of their type; None of what is no base64 or has no bytes."""
        known = self._files.get(text)
        if known is not None:
            return known
        try:
            data = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return None
        if not data or base64.b64encode(data).decode() != text:
            return None
        sign = sign_of(data)
        for attempt in range(_MOST_OF_FILE):
            drawn = self._streams.take("file", data, len(data) - len(sign), attempt)
            made = base64.b64encode(sign + drawn).decode()
            if made not in self._used_files:
                self._files[text] = made
                self._used_files.add(made)
                return made
        raise RedactionError(None, f"there are no more files of {len(data)} bytes")
