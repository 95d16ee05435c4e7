"""Digests of plain data: the same data gives the same digest, in every process and release. Pure."""

from __future__ import annotations

import hashlib

import msgspec


def digest_of(value: object) -> str:
    """Return the SHA-256 (hex) of ``value`` as JSON.

    Args:
        value: What msgspec encodes. Keys of dicts are sorted; fields of structs come in their order, defaults as their
            struct says.

    Raises:
        TypeError: JSON has no form for it.
    """
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()
