"""New events in their stored form: facts bytes, content bytes, blobs and digests.

The other way of ``events.codec``, which says what the forms are. Nothing is written that does not read back as it is.

Pure and safe to use from many threads: what an encoder has at hand while it works belongs to one call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, final

import msgspec
from msgspec import Raw, Struct

from events.codec import DECODE_ERRORS, checked_reference
from events.content import Absent, Content
from events.contentlist import (
    born_erased,
    check_salt,
    encode_item,
    encode_items,
    item_hash,
    item_salt,
    join_items,
    moved,
    parse_items,
    present,
)
from events.digest import chain_hashes
from events.effects import EventBase
from events.envelope import Envelope, Recorded, StoredEvent
from events.errors import ContentUnavailable, InvalidValue, MalformedEvent, TooLarge
from events.paths import contents
from events.upcasting import REGISTRY, Registry
from events.values import DEFAULT_LIMITS, Limits, check_value

_NO_BLOBS: Final[Mapping[str, bytes]] = MappingProxyType({})
_ERASED: Final = Absent.ERASED
_NO_CONTENTS: Final = (b"", b"", _NO_BLOBS)
_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_LONG_INTEGER: Final = b"0" * 19
"""What 19 digits become by ``_DIGITS``: an integer that may not fit into 64 bits has as many."""
_MESSAGE_PATH: Final = re.compile(r"\$(?:\.(?:added|queued)\[\d+\]|\.message)")
_ENCODED: Final = msgspec.json.Encoder().encode


class Encoded(Struct, frozen=True, gc=False):
    """An event ready to be stored, and the blobs (SHA-256 in hex -> bytes) that must be stored with it."""

    stored: StoredEvent
    blobs: Mapping[str, bytes]


@final
class _Writer:
    """An encoder of a registry's facts, and what reads them again. Serves one call at a time."""

    def __init__(self) -> None:
        self.found: list[Content] = []
        self.encode: Final = msgspec.json.Encoder(enc_hook=self._number).encode
        self.readers: Final[dict[type[EventBase], Callable[[bytes], EventBase]]] = {}
        """What reads facts that were just written, for the types that the registry was found to have."""

    def reader(self, cls: type[EventBase]) -> Callable[[bytes], EventBase]:
        """Return what reads facts of a type: their contents are those that the encoder found."""
        reader = self.readers[cls] = msgspec.json.Decoder(cls, dec_hook=self._same).decode
        return reader

    def _number(self, value: object) -> tuple[int, int]:
        if type(value) is not Content:
            raise TypeError(f"{type(value).__name__} cannot be stored in facts")
        found = self.found
        found.append(value)
        return len(found) - 1, value.size

    def _same(self, _type: type, reference: Any) -> Content:
        place, _ = checked_reference(reference)
        return self.found[place]


def encode(
    recorded: Recorded,
    *,
    salt: bytes,
    previous_digest: bytes,
    limits: Limits = DEFAULT_LIMITS,
    registry: Registry = REGISTRY,
) -> Encoded:
    """Make an event's stored form.

    Args:
        recorded: The event, of the newest schema, in its envelope. Its contents must be at hand, or erased (a copy of
            an erased message).
        salt: At least 16 random bytes of this event alone; they are not stored.
        previous_digest: Digest of the event before it; ``digest.GENESIS`` for the first.
        limits: Sizes allowed.
        registry: The types known.

    Raises:
        InvalidValue: A text or value that cannot be stored exactly; says the path within the event.
        TooLarge: The event or one of its messages is over its limit.
        ContentUnavailable: A content was not loaded.
        MalformedEvent: The event's fields do not have the types declared, or the envelope names another event.
        UnknownEventType: The type is not in the registry.
        ValueError: The salt is too short.
    """
    check_salt(salt)
    return next(encode_each((recorded,), lambda: salt, previous_digest, limits, registry))


def encode_each(
    recorded: Iterable[Recorded],
    draw_salt: Callable[[], bytes],
    previous_digest: bytes,
    limits: Limits = DEFAULT_LIMITS,
    registry: Registry = REGISTRY,
) -> Iterator[Encoded]:
    """Make the stored forms of a chat's next events, one by one, as they are asked for; each as ``encode`` makes it.

    Args:
        recorded: The events in order.
        draw_salt: Gives the salt of an event that has contents.
        previous_digest: Digest of the event before the first.
        limits: Sizes allowed.
        registry: The types known.

    Raises:
        InvalidValue, TooLarge, ContentUnavailable, MalformedEvent, UnknownEventType, ValueError: As ``encode``, when
            the event is asked for.
    """
    try:
        writer: _Writer = registry.writers.pop()  # atomic, as is append: calls run in many threads
    except IndexError:
        writer = _Writer()
    try:
        for each in recorded:
            envelope, event = each.envelope, each.event
            facts = _facts(event, envelope, writer, registry)
            size = len(facts)
            content, hashes, blobs = _NO_CONTENTS
            if writer.found:
                content, hashes, blobs = _contents(event, writer.found, draw_salt(), size, limits)
                size += len(content)
            if size > limits.event_bytes:
                raise TooLarge(f"event {event.type!r}", size, limits.event_bytes)
            if not envelope.command.isascii():
                check_value(envelope.command, "command")
            who = envelope.actor.id
            if who is not None and not who.isascii():
                check_value(who, "actor.id")
            previous_digest = chain_hashes(previous_digest, envelope, facts, hashes)
            stored = StoredEvent(envelope=envelope, facts=facts, content=content, digest=previous_digest)
            yield Encoded(stored, blobs)
    finally:
        writer.found = []
        registry.writers.append(writer)


def _facts(event: EventBase, envelope: Envelope, writer: _Writer, registry: Registry) -> bytes:
    """Return facts bytes, and have the contents in ``writer.found``.

    The bytes were shown to read back as the same event.
    """
    cls = type(event)
    read = writer.readers.get(cls)
    if read is None:
        if registry.find(event.type, event.schema, envelope.version) is not cls:
            raise MalformedEvent(_new(event), f"a {cls.__qualname__} is not what the registry has")
        read = writer.reader(cls)
    if envelope.type != cls.type or envelope.schema != cls.schema:
        raise MalformedEvent(_new(event), f"its envelope says {envelope.type!r}, schema {envelope.schema}")
    encode_facts = writer.encode
    writer.found = []
    try:
        facts = encode_facts(event)
    except (UnicodeEncodeError, RecursionError, TypeError) as error:
        _explain(event)
        raise MalformedEvent(_new(event), str(error)) from None
    if _LONG_INTEGER in facts.translate(_DIGITS):
        _explain(event)
    try:
        again = read(facts)
    except DECODE_ERRORS as error:
        raise MalformedEvent(_new(event), str(error)) from None
    if again != event:
        raise MalformedEvent(
            _new(event), "its fields do not have the types declared: it would not be read back as it is"
        )
    # The encoder leaves out a default only where it is the very same object. What was read has one object per value,
    # so equal events give equal bytes however their values were made; but for records: a usage of zeros that was given
    # is written as such, one that was left out is not.
    writer.found = []
    return encode_facts(again)


def _contents(
    event: EventBase, found: list[Content], salt: bytes, facts: int, limits: Limits
) -> tuple[bytes, bytes, Mapping[str, bytes]]:
    """Return content bytes, the hashes of the items, and blobs, for an event with so many bytes of ``facts``."""
    check_salt(salt)
    items: list[bytes] = []
    hashes: list[bytes] = []
    blobs: dict[str, bytes] = {}
    sizes: list[int] = []
    for place, content in enumerate(found):
        own_salt = item_salt(salt, place)
        held = content.held
        if held is _ERASED:
            erased = born_erased(own_salt)
            items.append(encode_item(erased))
            hashes.append(erased.hash)
            sizes.append(0)
            continue
        # In an ASCII text, which most are, nothing can be wrong.
        plain = type(held) is str and held.isascii()
        value = _ENCODED(held) if plain else _value_bytes(event, place, content, limits)
        size = len(value)
        sizes.append(size)
        hashes.append(item_hash(own_salt, value))
        if size > limits.blob_bytes:
            entry, digest = moved(own_salt.hex(), value)
            blobs[digest] = value
            items.append(encode_item(entry))
        else:
            items.append(present(own_salt, value))
    stored = join_items(items)
    if facts + len(stored) > limits.event_bytes:
        stored, more = _move_out(stored, facts + len(stored) - limits.event_bytes)
        blobs |= more
    if sum(sizes) > limits.message_bytes:
        _check_messages(event, sizes, limits)
    return stored, b"".join(hashes), blobs


def _new(event: EventBase) -> str:
    return f"new event {event.type!r}"


def _explain(event: EventBase) -> None:
    """Raise InvalidValue with the path of what an encoder stumbled over, if it is a value."""
    check_value(msgspec.to_builtins(event, enc_hook=lambda _content: None), "$")


def _move_out(content: bytes, excess: int) -> tuple[bytes, dict[str, bytes]]:
    """Move values to blobs, the largest first (of equal ones the first), until ``excess`` bytes are saved.

    Which ones move follows from the event alone. It may not be enough: then every value is out that is longer than
    the reference to it.
    """
    items = parse_items(content)
    blobs: dict[str, bytes] = {}
    values = [(bytes(entry.v), place) for place, entry in enumerate(items) if isinstance(entry.v, Raw)]
    for value, place in sorted(values, key=lambda each: (-len(each[0]), each[1])):
        entry, digest = moved(items[place].s, value)
        saved = len(encode_item(items[place])) - len(encode_item(entry))
        if excess <= 0 or saved <= 0:
            break
        items[place] = entry
        blobs[digest] = value
        excess -= saved
    return encode_items(items), blobs


def _value_bytes(event: EventBase, place: int, content: Content, limits: Limits) -> bytes:
    try:
        value = content.value
        check_value(value, "$", limits)
    except InvalidValue as error:
        raise InvalidValue(_path(event, place) + error.path[1:], error.why) from None
    except ContentUnavailable as error:
        raise ContentUnavailable(f"{error.why} ({_path(event, place)} of a new event)") from None
    return _ENCODED(value)


def _path(event: EventBase, place: int) -> str:
    return next(path for at, (path, _) in enumerate(contents(event)) if at == place)


def _check_messages(event: EventBase, sizes: list[int], limits: Limits) -> None:
    """Sum sizes by message; what belongs to none (a title, a recorded result) counts as one."""
    totals: dict[str, int] = {}
    for size, (path, _) in zip(sizes, contents(event), strict=True):
        match = _MESSAGE_PATH.match(path)
        message = match[0] if match else "$"
        totals[message] = totals.get(message, 0) + size
    for message, total in totals.items():
        if total > limits.message_bytes:
            raise TooLarge(
                f"message {message}" if message != "$" else f"content of {event.type!r}", total, limits.message_bytes
            )
