"""Random bytes and ids: drawn in stock, because each event and each command wants some.

Ids are 22 characters that need no escaping in URLs and file names: 7 of the time in milliseconds (until the year 2109),
so that ids of one process come in order and those of one time lie together in an index, and 15 random ones (90 bits).
"""

from __future__ import annotations

import os
import time
from binascii import b2a_base64
from collections.abc import Callable
from functools import lru_cache
from typing import Final, final

_STOCK: Final = 3072
"""Bytes drawn at once."""

_ALPHABET: Final = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
"""The 64 characters of URL-safe base64 in the order of their codes, so that ids sort by time."""

_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")

_TIME_CHARACTERS: Final = 7
_RANDOM_CHARACTERS: Final = 15


@final
class RandomBytes:
    """Gives random bytes; a process that is forked off draws its own.

    Args:
        draw: Where they come from.
    """

    def __init__(self, draw: Callable[[int], bytes] = os.urandom) -> None:
        self._draw = draw
        self._stock = b""
        self._at = 0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._empty)

    def take(self, count: int) -> bytes:
        """Return ``count`` bytes, at most some hundred, that nobody got before."""
        start = self._at
        end = start + count
        if end > len(self._stock):
            self._stock = self._draw(max(_STOCK, count))
            start, end = 0, count
        self._at = end
        return self._stock[start:end]

    def _empty(self) -> None:
        self._stock, self._at = b"", 0


RANDOM: Final = RandomBytes()
"""The stock of this process."""


def salt() -> bytes:
    """Return the salt of an event's content."""
    return RANDOM.take(16)


def new_id(now: Callable[[], float] = time.time) -> str:
    """Return an id that is never given twice; ``now`` is seconds since 1970."""
    text = b2a_base64(RANDOM.take(12), newline=False).translate(_URL_SAFE)
    return _time_text(round(now() * 1000)) + text[:_RANDOM_CHARACTERS].decode()


@lru_cache(maxsize=8)
def _time_text(moment: int) -> str:
    text = ""
    for _ in range(_TIME_CHARACTERS):
        text = _ALPHABET[moment & 63] + text
        moment >>= 6
    return text
