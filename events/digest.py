"""The chain of digests: each covers the one before it, the event's envelope, its facts and the hashes of its contents.

The chat id is no part of it: a log that is imported under another id still verifies, and the facts of the first event
hold the id that the chat was created under. Whether what is in the log was allowed to happen is for ``chatstate`` to
audit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final, final

import msgspec

from events.contentlist import blob_references, item_hashes
from events.envelope import Envelope, StoredEvent
from events.errors import DigestMismatch, MalformedEvent

GENESIS: Final = bytes(32)
"""What the first event's digest chains from."""

_ENCODER: Final = msgspec.json.Encoder()
_length: Final = struct.Struct(">Q").pack
"""A length in 8 bytes."""
_head: Final = struct.Struct(">Q32sQ").pack
"""The digest before, after its length, and the length of what follows."""


def envelope_bytes(envelope: Envelope) -> bytes:
    """Return the canonical bytes of an envelope: a JSON array of its fields in their order, the actor as [kind, id]."""
    actor = envelope.actor
    return _ENCODER.encode(
        (
            envelope.version,
            envelope.type,
            envelope.schema,
            envelope.recorded_at,
            (actor.kind, actor.id),
            envelope.source,
            envelope.dest,
            envelope.command,
            envelope.index,
        )
    )


def chain(previous: bytes, envelope: Envelope, facts: bytes, content: bytes) -> bytes:
    """Return the digest of an event: SHA-256, 32 bytes.

    Args:
        previous: Digest of the event before it, ``GENESIS`` for the first.
        envelope: The event's envelope.
        facts: Its facts as stored.
        content: Its content as stored. The result is the same before and after erasing, and whether values lie here or
            in blobs.

    Raises:
        MalformedEvent: The content bytes are not a content list.
    """
    return chain_hashes(previous, envelope, facts, item_hashes(content, f"version {envelope.version}"))


def chain_hashes(previous: bytes, envelope: Envelope, facts: bytes, hashes: bytes) -> bytes:
    """Return what ``chain`` does, given the hashes of the content's items, one after the other."""
    told = envelope_bytes(envelope)
    # Each section is preceded by its length, so that no byte can move from one to the next.
    head = _head(len(previous), previous, len(told))
    return sha256(b"".join((head, told, _length(len(facts)), facts, _length(len(hashes)), hashes))).digest()


@final
class ChainCheck:
    """Checks that a log is as it was written, event by event.

    Checks versions (from 1, without gaps), times (never going backwards), digests, and the bytes of the blobs given.

    Attributes:
        digest: The digest of the last event; ``GENESIS`` before the first.
    """

    __slots__ = ("_time", "_version", "digest")

    def __init__(self) -> None:
        self.digest = GENESIS
        self._version = 0
        self._time = 0

    def take(self, stored: StoredEvent, blobs: Mapping[str, bytes] | None = None) -> None:
        """Check the next event; ``blobs`` by digest (hex), as many as are at hand.

        Raises:
            DigestMismatch: Something is wrong with it, and what. What follows it can be checked no more.
        """
        envelope, version = stored.envelope, self._version + 1
        if envelope.version != version:
            raise DigestMismatch(version, f"the event that stands here says that it is version {envelope.version}")
        if envelope.recorded_at < self._time:
            raise DigestMismatch(version, f"recorded_at goes backwards, from {self._time} to {envelope.recorded_at}")
        try:
            digest = chain(self.digest, envelope, stored.facts, stored.content)
            _check_blobs(stored.content, {} if blobs is None else blobs)
        except (MalformedEvent, ValueError) as error:
            raise DigestMismatch(version, str(error)) from None
        if digest != stored.digest:
            raise DigestMismatch(version, "its digest does not follow from its bytes and the digest before it")
        self.digest, self._version, self._time = digest, version, envelope.recorded_at


def verify_chain(events: Iterable[StoredEvent], blobs: Mapping[str, bytes] | None = None) -> bytes:
    """Check that a whole log is as it was written; see :class:`ChainCheck`.

    Args:
        events: All events of a chat in order.
        blobs: Blobs by digest (hex), as many as are at hand.

    Returns:
        The digest of the last event; ``GENESIS`` where there is none.

    Raises:
        DigestMismatch: The first event that something is wrong with, and what.
    """
    check = ChainCheck()
    for stored in events:
        check.take(stored, blobs)
    return check.digest


def _check_blobs(content: bytes, blobs: Mapping[str, bytes]) -> None:
    for digest, size in blob_references(content):
        value = blobs.get(digest)
        if value is None:
            continue
        if len(value) != size:
            raise ValueError(f"blob {digest} has {len(value)} bytes instead of {size}")
        if sha256(value).hexdigest() != digest:
            raise ValueError(f"the bytes of blob {digest} have another digest")
