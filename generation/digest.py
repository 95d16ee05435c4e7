"""Digests of plain data: the same data gives the same digest, in every process and release. Pure."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct


def digest_of(value: object) -> str:
    """Return the SHA-256 (hex) of ``value`` as JSON, all fields written out and keys sorted.

    Fields at their defaults count too: msgspec tells a default by identity, so of two equal structs one may leave a
    field out that the other writes.

    Args:
        value: What msgspec encodes.

    Raises:
        TypeError: JSON has no form for it.
    """
    return hashlib.sha256(msgspec.json.encode(_whole(value), order="sorted")).hexdigest()


def _whole(value: object) -> object:
    if isinstance(value, Struct):
        fields = {field.encode_name: _whole(getattr(value, field.name)) for field in msgspec.structs.fields(value)}
        tag = value.__struct_config__.tag
        return {"": tag, **fields} if tag is not None else fields
    if isinstance(value, dict):
        return {str(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value
