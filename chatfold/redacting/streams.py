"""Bytes that follow from a key and a text: nobody without the key can tell them, and the same call gives the same.

Owns how a key is used. One key serves many purposes (texts, numbers, names, salts); what is asked for one says nothing
of another.
"""

from __future__ import annotations

import hmac
from hashlib import sha256, shake_256
from typing import Final, final

from chatfold.redacting.errors import KeyTooShort

KEY_BYTES: Final = 16
"""Bytes that a key has at least."""


@final
class Streams:
    """Bytes by purpose and text, under one key.

    Args:
        key: The key. Who has it can try out whether a guess is right, so it is no part of what is published.

    Raises:
        KeyTooShort: It has less than ``KEY_BYTES`` bytes.
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) < KEY_BYTES:
            raise KeyTooShort(f"a key has at least {KEY_BYTES} bytes, this one has {len(key)}")
        self._key: Final = key

    def take(self, purpose: str, text: str | bytes, length: int, attempt: int = 0) -> bytes:
        """Return ``length`` bytes; each attempt gives others."""
        raw = text if isinstance(text, bytes) else text.encode()
        head = f"{purpose}\0{attempt}\0".encode()
        return shake_256(hmac.digest(self._key, head + raw, sha256)).digest(length)
