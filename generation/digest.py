"""Digests of plain data: the same data gives the same digest, in every process. Pure.

A digest is the first 128 bits of a SHA-256 as 22 characters of URL-safe base64 without padding: it tells one prompt or
policy from another, and stands in many events. (Logs of releases before 0.2 hold 64 hexadecimal digits instead.)

All fields of a struct count, so a release that adds one to what an agent or a model declares gives other revisions and
policies, and each chat records its policy once more. Digests that are compared with those of an earlier release, which
are those of messages and of what stands before signed thinking, are pinned by a test: a field that is added to what
they are taken of has the default ``msgspec.UNSET``, which is in no digest, so that what does not use it keeps its own.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64encode
from functools import cache
from typing import Final

import msgspec
from msgspec import UNSET, Struct

_FORM: Final = re.compile(r"[A-Za-z0-9_-]{22}|[0-9a-f]{64}")
DIGEST_BYTES: Final = 16
"""Bytes of a SHA-256 that make a digest."""


def digest_of(value: object) -> str:
    """Return the digest of ``value`` as JSON, all fields written out and keys sorted.

    Fields at their defaults count too: msgspec tells a default by identity, so of two equal structs one may leave a
    field out that the other writes.

    Args:
        value: What msgspec encodes.

    Raises:
        TypeError: JSON has no form for it.
    """
    return as_text(hashlib.sha256(msgspec.json.encode(_whole(value), order="sorted")).digest())


def as_text(sha256: bytes) -> str:
    """Return the digest that a SHA-256 gives."""
    return urlsafe_b64encode(sha256[:DIGEST_BYTES])[:-2].decode()


def is_digest(text: str) -> bool:
    """Whether a text has the form of a digest: a name that stands for one in a redacted log has not."""
    return _FORM.fullmatch(text) is not None


def _whole(value: object) -> object:
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Struct):
        tag, fields = _form(type(value))
        given = ((written, getattr(value, name)) for name, written in fields)
        members = {written: _whole(each) for written, each in given if each is not UNSET}
        return {"": tag, **members} if tag is not None else members
    if isinstance(value, dict):
        return {str(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


@cache
def _form(kind: type[Struct]) -> tuple[object, tuple[tuple[str, str], ...]]:
    """Return the tag of a kind of structs, and its fields with the names that they are written by."""
    fields = tuple(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    return kind.__struct_config__.tag, fields
