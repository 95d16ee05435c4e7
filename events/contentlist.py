"""The content list of a stored event: its items, their salts and hashes, and erasing.

The content bytes of an event are a JSON array with one item per content, in the order of the places that the facts
name:

- at hand: ``{"s": salt, "v": value}``; in a blob: ``{"s": salt, "b": SHA-256 of the blob, "n": its bytes}``; erased:
  ``{"h": item hash}``.

An item's hash is SHA-256(salt, SHA-256 of the value's bytes, their number), so it follows from a value and from the
reference to its blob alike, and the chain of digests (``events.digest``) is checked without reading blobs. Erasing
keeps the hash and drops value and salt: short values cannot be guessed from what is left. ``events.encoding`` puts
values in and ``events.codec`` takes them out.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from events.errors import MalformedEvent

SALT_BYTES: Final = 16
"""Bytes of an event's salt, which the caller draws, and of an item's, which is derived from it."""


class Item(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One item of a content list; the value is kept as the bytes that were stored."""

    s: str | UnsetType = UNSET
    v: Raw | UnsetType = UNSET
    b: str | UnsetType = UNSET
    n: int | UnsetType = UNSET
    h: str | UnsetType = UNSET

    @property
    def hash(self) -> bytes:
        """SHA-256 that stands for the item in the event's digest; the same before and after erasing.

        Raises:
            ValueError: A salt or hash is not hexadecimal, or the item has none of the three forms.
        """
        if isinstance(self.h, str):
            return _unhex(self.h, 32)
        salt = _unhex(self.s or "", SALT_BYTES)
        if isinstance(self.v, Raw):
            return item_hash(salt, bytes(self.v))
        return _hash_of_digest(salt, _unhex(self.b or "", 32), self.n or 0)


_DECODER: Final = msgspec.json.Decoder(list[Item])
_ENCODER: Final = msgspec.json.Encoder()


def check_salt(salt: bytes) -> None:
    """Refuse an event's salt that is too short.

    Raises:
        ValueError: It is.
    """
    if len(salt) < SALT_BYTES:
        raise ValueError(f"a salt has at least {SALT_BYTES} bytes")


def item_salt(salt: bytes, place: int) -> bytes:
    """Derive the salt of the item at ``place`` from its event's salt."""
    return sha256(salt + place.to_bytes(4, "big")).digest()[:SALT_BYTES]


def item_hash(salt: bytes, value: bytes) -> bytes:
    """Return the hash of an item from its salt and its value, given as JSON bytes."""
    return _hash_of_digest(salt, sha256(value).digest(), len(value))


def _hash_of_digest(salt: bytes, value_digest: bytes, size: int) -> bytes:
    return sha256(salt + value_digest + size.to_bytes(8, "big")).digest()


def present(salt: bytes, value: bytes) -> bytes:
    """Return the item of a value at hand, given as JSON bytes, as it is stored."""
    return b'{"s":"%b","v":%b}' % (hexlify(salt), value)


def moved(salt: str | UnsetType, value: bytes) -> tuple[Item, str]:
    """Return the item of a value in a blob, and the blob's digest (hex)."""
    digest = sha256(value).hexdigest()
    return Item(s=salt, b=digest, n=len(value)), digest


def born_erased(salt: bytes) -> Item:
    """Return the item of a content that was erased before it was copied here; its hash stands for no value."""
    return Item(h=sha256(salt).hexdigest())


def encode_item(item: Item) -> bytes:
    """Return an item as it is stored."""
    return _ENCODER.encode(item)


def join_items(items: list[bytes]) -> bytes:
    """Return the content bytes of one or more items as they are stored."""
    return b"[%b]" % b",".join(items)


def encode_items(items: list[Item]) -> bytes:
    """Return content bytes; none where there is no item."""
    return _ENCODER.encode(items) if items else b""


def parse_items(content: bytes, where: str = "content") -> list[Item]:
    """Read content bytes, which must be exactly as this module writes them.

    Args:
        content: The bytes; none is the empty list.
        where: The event, for the error.

    Raises:
        MalformedEvent: Anything else: the digest covers values and salts, so nothing else may vary.
    """
    if not content:
        return []
    try:
        items = _DECODER.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent(where, f"content: {error}") from None
    if not items or _ENCODER.encode(items) != content:
        raise MalformedEvent(where, "content is not in its canonical form")
    for place, entry in enumerate(items):
        if _form(entry) not in _FORMS:
            raise MalformedEvent(where, f"content item {place} has none of the three forms")
    return items


def item_hashes(content: bytes, where: str = "content") -> bytes:
    """Return the hashes of all items, one after the other: what the digest of an event says of its content.

    Raises:
        MalformedEvent: The bytes are not a content list.
    """
    try:
        return b"".join(entry.hash for entry in parse_items(content, where))
    except ValueError as error:
        raise MalformedEvent(where, f"content: {error}") from None


def blob_references(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield digest (hex) and bytes of each blob that a content list refers to, in order.

    Raises:
        MalformedEvent: The bytes are not a content list.
    """
    if b'"b":' not in content:
        return
    for entry in parse_items(content):
        if isinstance(entry.b, str) and isinstance(entry.n, int):
            yield entry.b, entry.n


def content_blobs(content: bytes) -> tuple[str, ...]:
    """Return the digests (hex) of the blobs that a content list refers to, each once, in order.

    Raises:
        MalformedEvent: The bytes are not a content list.
    """
    return tuple(dict.fromkeys(digest for digest, _ in blob_references(content)))


def erase_items(content: bytes, places: Collection[int] | None = None) -> bytes:
    """Return content bytes without the values and salts of some items; digests stay valid. What was erased stays so.

    Args:
        content: Content bytes of an event.
        places: Places of the items to erase; all where None.

    Raises:
        MalformedEvent: The bytes are not a content list.
        IndexError: A place that the list does not have.
    """
    items = parse_items(content)
    for place in range(len(items)) if places is None else places:
        if not 0 <= place < len(items):
            raise IndexError(place)
        items[place] = Item(h=items[place].hash.hex())
    return encode_items(items)


_FORMS: Final = frozenset({"sv", "sbn", "h"})


def _form(entry: Item) -> str:
    return "".join(name for name in entry.__struct_fields__ if getattr(entry, name) is not UNSET)


def _unhex(text: str, length: int) -> bytes:
    value = bytes.fromhex(text)
    if len(value) != length or value.hex() != text:
        raise ValueError(f"not {length} bytes in lower-case hexadecimal digits")
    return value
