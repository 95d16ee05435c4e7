"""The stored form of events: an event <-> its facts bytes and its content bytes.

Facts are the JSON of the event's struct without its tag (type and schema stand in the envelope); each content in it is
replaced by ``[place, bytes]``, its place in the event's content list (``events.contentlist``). Values longer than a
limit go to blobs, and where an event would still be too long, its largest ones do. Bytes that were stored are never
encoded again: digests, export and import go by them. Here they are read; ``events.encoding`` writes them.

Pure and safe to use from many threads: what a decoder has at hand while it works belongs to one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from events.content import Absent, Content, Json
from events.effects import Effects, EventBase
from events.envelope import Envelope, Recorded, StoredEvent
from events.errors import InvalidValue, MalformedEvent
from events.messages import share_names
from events.upcasting import REGISTRY, Facts, Registry
from events.vocabulary import Event

_Decoder: TypeAlias = msgspec.json.Decoder[EventBase]

_NO_BLOBS: Final[Mapping[str, bytes]] = MappingProxyType({})
DECODE_ERRORS: Final = (msgspec.MsgspecError, InvalidValue, ValueError, TypeError, LookupError, RecursionError)


class _ReadItem(Struct, frozen=True, forbid_unknown_fields=True):
    """An item of a content list with its value decoded."""

    s: str | UnsetType = UNSET
    v: Any = UNSET
    b: str | UnsetType = UNSET
    n: int | UnsetType = UNSET
    h: str | UnsetType = UNSET


_ITEMS: Final = msgspec.json.Decoder(list[_ReadItem])
_VALUE: Final = msgspec.json.Decoder()


@final
class _Tools:
    """Decoders of a registry, with what their hook reads. Serves one call at a time."""

    def __init__(self) -> None:
        self.values: Sequence[Json | Absent] = ()
        self.decoders: dict[type[EventBase], _Decoder] = {}

    def decoder(self, cls: type[EventBase]) -> _Decoder:
        """Return the decoder of an event type."""
        decoder = self.decoders.get(cls)
        if decoder is None:
            decoder = self.decoders[cls] = msgspec.json.Decoder(cls, dec_hook=self.fill)
        return decoder

    def fill(self, _type: type, reference: Any) -> Content:
        """Make the content that a reference in the facts stands for."""
        place, size = checked_reference(reference)
        return Content(self.values[place], size)


def checked_reference(reference: Any) -> tuple[int, int]:
    """Return place and size of a content as the facts have them.

    Raises:
        ValueError, TypeError: They are not two numbers of their kind.
    """
    place, size = reference
    if type(place) is not int or type(size) is not int or place < 0 or size < 0:
        raise ValueError("a content is [place, bytes]")
    return place, size


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
    tools.values = ()
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
    except DECODE_ERRORS as error:
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
        except DECODE_ERRORS as error:
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
    except DECODE_ERRORS as error:
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
