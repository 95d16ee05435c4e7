"""The stored form of events: an event <-> its facts bytes and its content bytes.

Facts are the JSON of the event's struct without its tag (type and schema stand in the envelope); each content in it is
replaced by ``[place, bytes]``, its place in the event's content list (``events.contentlist``). Values longer than a
limit go to blobs, and where an event would still be too long, its largest ones do. Bytes that were stored are never
encoded again: digests, export and import go by them.

Pure and safe to use from many threads: what an encoder or decoder has at hand while it works belongs to one call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from events.content import Absent, Content, Json
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
from events.effects import Effects, EventBase
from events.envelope import Envelope, Recorded, StoredEvent
from events.errors import ContentUnavailable, InvalidValue, MalformedEvent, TooLarge
from events.messages import share_names
from events.paths import contents
from events.upcasting import REGISTRY, Facts, Registry
from events.values import DEFAULT_LIMITS, Limits, check_value
from events.vocabulary import Event

_Decoder: TypeAlias = msgspec.json.Decoder[EventBase]

_NO_BLOBS: Final[Mapping[str, bytes]] = MappingProxyType({})
_NO_CONTENTS: Final = (b"", b"", _NO_BLOBS)
_DIGITS: Final = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in range(256))
_LONG_INTEGER: Final = b"0" * 19
"""What 19 digits become by ``_DIGITS``: an integer that may not fit into 64 bits has as many."""
_MESSAGE_PATH: Final = re.compile(r"\$(?:\.(?:added|queued)\[\d+\]|\.message)")
_DECODE_ERRORS: Final = (msgspec.MsgspecError, ValueError, TypeError, LookupError, RecursionError)


class Encoded(Struct, frozen=True):
    """An event ready to be stored, and the blobs (SHA-256 in hex -> bytes) that must be stored with it."""

    stored: StoredEvent
    blobs: Mapping[str, bytes]


class _ReadItem(Struct, frozen=True, forbid_unknown_fields=True):
    """An item of a content list with its value decoded."""

    s: str | UnsetType = UNSET
    v: Any = UNSET
    b: str | UnsetType = UNSET
    n: int | UnsetType = UNSET
    h: str | UnsetType = UNSET


_ITEMS: Final = msgspec.json.Decoder(list[_ReadItem])
_VALUE: Final = msgspec.json.Decoder()
_ENCODED: Final = msgspec.json.Encoder().encode


@final
class _Tools:
    """An encoder and decoders of a registry, with what their hooks read and write. Serves one call at a time."""

    def __init__(self) -> None:
        self.found: list[Content] = []
        self.values: Sequence[Json | Absent] = ()
        self.encode: Final = msgspec.json.Encoder(enc_hook=self._number).encode
        self.decoders: dict[type[EventBase], _Decoder] = {}
        self.readers: dict[type[EventBase], Callable[[bytes], EventBase]] = {}
        """What reads facts that were just written, for the types that the registry has."""

    def decoder(self, cls: type[EventBase]) -> _Decoder:
        """Return the decoder of an event type."""
        decoder = self.decoders.get(cls)
        if decoder is None:
            decoder = self.decoders[cls] = msgspec.json.Decoder(cls, dec_hook=self.fill)
        return decoder

    def reader(self, cls: type[EventBase]) -> Callable[[bytes], EventBase]:
        """Return what reads facts that were just written: their contents are those that the encoder found."""
        reader = self.readers[cls] = msgspec.json.Decoder(cls, dec_hook=self._same).decode
        return reader

    def _number(self, value: object) -> tuple[int, int]:
        if type(value) is not Content:
            raise TypeError(f"{type(value).__name__} cannot be stored in facts")
        found = self.found
        found.append(value)
        return len(found) - 1, value.size

    def _same(self, _type: type, reference: Any) -> Content:
        place, size = reference
        return self.found[_checked(place, size)]

    def fill(self, _type: type, reference: Any) -> Content:
        """Make the content that a reference in the facts stands for."""
        place, size = reference
        return Content(self.values[_checked(place, size)], size)


def _checked(place: object, size: object) -> int:
    """Return a content's place, if it and the size are numbers of their kind."""
    if type(place) is not int or type(size) is not int or place < 0 or size < 0:
        raise ValueError("a content is [place, bytes]")
    return place


def _bare(_type: type, reference: Any) -> Content:
    """Make a content that is not loaded. Those of common sizes are shared: a fold meets one for every content."""
    _place, size = reference
    if type(size) is not int or size < 0:
        raise ValueError("a content is [place, bytes]")
    return _SHARED[size] if size < _SHARED_SIZES else Content(Absent.NOT_LOADED, size)


_SHARED_SIZES: Final = 2048
_SHARED: Final = [Content(Absent.NOT_LOADED, size) for size in range(_SHARED_SIZES)]


def _borrow(registry: Registry) -> _Tools:
    """Return tools that no other call has, since calls run in many threads; ``_give_back`` must follow."""
    try:
        tools: _Tools = registry.idle.pop()  # atomic, as is append
    except IndexError:
        tools = _Tools()
    return tools


def _give_back(registry: Registry, tools: _Tools) -> None:
    tools.found, tools.values = [], ()
    registry.idle.append(tools)


def decode(
    stored: StoredEvent, *, blobs: Mapping[str, bytes] = _NO_BLOBS, content: bool = True, registry: Registry = REGISTRY
) -> Recorded:
    """Read a stored event, upcast to the newest schema.

    Args:
        stored: The event as it was stored.
        blobs: Blobs by digest (hex); a value whose blob is not among them reads as not loaded.
        content: False leaves all contents not loaded and does not look at the content bytes.
        registry: The types and schemas known.

    Raises:
        UnknownEventType: The type is not known.
        NewerSchema: The schema is newer than what is known.
        MalformedEvent: The bytes are not what the envelope says.
    """
    envelope = stored.envelope
    cls = registry.find(envelope.type, envelope.schema, envelope.version)
    try:
        if content:
            event = _filled(stored, cls, read_values(stored.content, blobs), registry)
        elif envelope.schema == cls.schema:
            event = _bare_decoder(cls, registry).decode(stored.facts)
        else:
            event = msgspec.convert(_upcast(stored, registry), cls, dec_hook=_bare)
    except _DECODE_ERRORS as error:
        raise _malformed(envelope, error) from None
    return Recorded(envelope=envelope, event=event)


def decode_each(
    events: Iterable[StoredEvent],
    *,
    blobs: Mapping[str, bytes] = _NO_BLOBS,
    content: bool = True,
    registry: Registry = REGISTRY,
) -> Iterator[Recorded]:
    """Read many stored events, one by one, as they are asked for; the same as ``decode`` of each, at less cost.

    A fold of them keeps what it needs and no list of all.

    Raises:
        UnknownEventType, NewerSchema, MalformedEvent: As ``decode``, when the event is asked for.
    """
    if content:
        for stored in events:
            yield decode(stored, blobs=blobs, registry=registry)
        return
    readers: dict[str, tuple[int, Callable[[bytes], Event]]] = {}
    for stored in events:
        envelope = stored.envelope
        try:
            schema, read = readers[envelope.type]
        except KeyError:
            schema, read = readers[envelope.type] = _reader(envelope, registry)
        if schema != envelope.schema:
            yield decode(stored, content=False, registry=registry)
            continue
        try:
            event = read(stored.facts)
        except _DECODE_ERRORS as error:
            raise _malformed(envelope, error) from None
        yield Recorded(envelope, event)


def _reader(envelope: Envelope, registry: Registry) -> tuple[int, Callable[[bytes], Any]]:
    """Return the newest schema of an event's type, and what reads facts of that schema."""
    cls = registry.find(envelope.type, envelope.schema, envelope.version)
    return cls.schema, _bare_decoder(cls, registry).decode


def _bare_decoder(cls: type[EventBase], registry: Registry) -> _Decoder:
    decoder: _Decoder | None = registry.bare.get(cls)
    if decoder is None:
        decoder = registry.bare[cls] = msgspec.json.Decoder(cls, dec_hook=_bare)
    return decoder


def decode_places(stored: StoredEvent, registry: Registry = REGISTRY) -> Event:
    """Read the facts of an event such that each content's value is its place in the content list.

    Raises:
        UnknownEventType, NewerSchema, MalformedEvent: As ``decode``.
    """
    envelope = stored.envelope
    cls = registry.find(envelope.type, envelope.schema, envelope.version)
    try:
        event: Event = _filled(stored, cls, range(2**31), registry)
    except _DECODE_ERRORS as error:
        raise _malformed(envelope, error) from None
    return event


def _filled(
    stored: StoredEvent, cls: type[EventBase], values: Sequence[Json | Absent], registry: Registry
) -> Any:  # a registry's classes are the members of Event, or a test's stand-ins for them
    tools = _borrow(registry)
    try:
        tools.values = values
        if stored.envelope.schema == cls.schema:
            event = tools.decoder(cls).decode(stored.facts)
        else:
            event = msgspec.convert(_upcast(stored, registry), cls, dec_hook=tools.fill)
    finally:
        _give_back(registry, tools)
    if isinstance(event, Effects):
        for message in event.added:
            if message.step is not None:
                share_names(message.step)
    return event


def _upcast(stored: StoredEvent, registry: Registry) -> Facts:
    envelope = stored.envelope
    if envelope.schema < 1:
        raise ValueError(f"schema {envelope.schema}, the first is 1")
    contents = len(_ITEMS.decode(stored.content)) if stored.content else 0
    return registry.upcast(envelope.type, envelope.schema, _VALUE.decode(stored.facts), contents)


def _malformed(envelope: Envelope, error: Exception) -> MalformedEvent:
    return MalformedEvent(f"version {envelope.version}", f"{envelope.type!r}: {error}")


def read_values(content: bytes, blobs: Mapping[str, bytes] = _NO_BLOBS) -> list[Json | Absent]:
    """Return the values of a content list in order; what lies in a blob that is not given is not loaded.

    Raises:
        msgspec.MsgspecError, ValueError, RecursionError: The bytes are not a content list, or a blob is not JSON.
    """
    if not content:
        return []
    values: list[Json | Absent] = []
    for entry in _ITEMS.decode(content):
        if entry.v is not UNSET:
            values.append(entry.v)
        elif isinstance(entry.b, str):
            blob = blobs.get(entry.b)
            values.append(Absent.NOT_LOADED if blob is None else _VALUE.decode(blob))
        elif entry.h is not UNSET:
            values.append(Absent.ERASED)
        else:
            raise ValueError("an item has neither value nor hash")
    return values


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
    tools = _borrow(registry)
    try:
        for each in recorded:
            envelope, event = each.envelope, each.event
            facts = _facts(event, envelope, tools, registry)
            size = len(facts)
            content, hashes, blobs = _NO_CONTENTS
            if tools.found:
                content, hashes, blobs = _contents(event, tools.found, draw_salt(), size, limits)
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
        _give_back(registry, tools)


def _facts(event: EventBase, envelope: Envelope, tools: _Tools, registry: Registry) -> bytes:
    """Return facts bytes, and have the contents in ``tools.found``.

    The bytes were shown to read back as the same event.
    """
    cls = type(event)
    read = tools.readers.get(cls)
    if read is None:
        if registry.find(event.type, event.schema, envelope.version) is not cls:
            raise MalformedEvent(_new(event), f"a {cls.__qualname__} is not what the registry has")
        read = tools.reader(cls)
    if envelope.type != cls.type or envelope.schema != cls.schema:
        raise MalformedEvent(_new(event), f"its envelope says {envelope.type!r}, schema {envelope.schema}")
    encode_facts = tools.encode
    tools.found = []
    try:
        facts = encode_facts(event)
    except (UnicodeEncodeError, RecursionError, TypeError) as error:
        _explain(event)
        raise MalformedEvent(_new(event), str(error)) from None
    if _LONG_INTEGER in facts.translate(_DIGITS):
        _explain(event)
    try:
        again = read(facts)
    except _DECODE_ERRORS as error:
        raise MalformedEvent(_new(event), str(error)) from None
    if again != event:
        raise MalformedEvent(
            _new(event), "its fields do not have the types declared: it would not be read back as it is"
        )
    # The encoder leaves out a default only where it is the very same object. What was read has one object per value,
    # so equal events give equal bytes however their values were made.
    tools.found = []
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
        if held is Absent.ERASED:
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
        hashes.append(item_hash(own_salt, sha256(value).digest(), size))
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
