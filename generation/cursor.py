"""A stream position: one opaque text over the committed version and the place among live parts. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

from generation.errors import CursorInvalid

_FORM: Final = re.compile(r"1((?:\.(?:0|[1-9][0-9]{0,18})){4})", re.ASCII)
_LONGEST: Final = 128
_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """What a reader of a chat's stream has seen.

    Attributes:
        version: The last committed event.
        history_version: With ``attempt``, the episode of the last live part; 0 where none was seen since that event.
        attempt: See ``history_version``.
        seq: The last live part of that episode; 0 for none.
    """

    version: int = 0
    history_version: int = 0
    attempt: int = 0
    seq: int = 0

    def __post_init__(self) -> None:
        for name in ("version", "history_version", "attempt", "seq"):
            if not 0 <= getattr(self, name) <= _MAX:
                raise ValueError(f"{name} of a cursor must be between 0 and {_MAX}")

    def encode(self) -> str:
        """Return the cursor as text that is safe in URLs and headers."""
        plain = f"1.{self.version}.{self.history_version}.{self.attempt}.{self.seq}"
        return base64.urlsafe_b64encode(plain.encode()).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Return the cursor that ``encode`` made ``text`` of.

        Raises:
            CursorInvalid: It did not.
        """
        if len(text) > _LONGEST:
            raise CursorInvalid(text, "too long")
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise CursorInvalid(text, "not base64") from None
        match = _FORM.fullmatch(data.decode("ascii", "replace"))
        if match is None:
            raise CursorInvalid(text, "not of a form known here")
        numbers = [int(number) for number in match[1].split(".")[1:]]
        if max(numbers) > _MAX:
            raise CursorInvalid(text, "a number is too large")
        cursor = cls(*numbers)
        if cursor.encode() != text:
            raise CursorInvalid(text, "not as it was written")
        return cursor
