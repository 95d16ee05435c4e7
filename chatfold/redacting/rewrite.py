"""A log without its content: ``redact`` makes it, with facts as they were but for mapped names, and a chain of its own.

Sizes, places, times, versions and everything that fold and decision read stay. Salts follow from the key, so the same
call gives the same bytes. What it made is proved by ``chatfold.redacting.check``, which knows nothing of how. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from chatfold.redacting.avoiding import avoided
from chatfold.redacting.content import Contents, Form
from chatfold.redacting.errors import RedactionError
from chatfold.redacting.facts import Kind, kind_of_actor, walk
from chatfold.redacting.names import Names
from chatfold.redacting.rules import RedactionRules
from chatfold.redacting.streams import Streams
from events.codec import decode_each, decode_places
from events.contentlist import Item, encode_items, item_salt, moved, parse_items
from events.digest import GENESIS, chain
from events.envelope import Envelope, StoredEvent
from events.given import checked_items, checked_kind, checked_mapping
from events.ids import CommandId
from events.records import Actor
from events.upcasting import REGISTRY
from events.vocabulary import PolicyRecorded

_MARK_BYTES: Final = 16


class Redacted(Struct, frozen=True, kw_only=True):
    """A log that was redacted.

    Attributes:
        chat: The id that stands for the chat's, as its first event has it.
        events: The events.
        blobs: Large contents by digest (hex): of those that were given, what stands for them.
        mark: Digest of the rules under the key, for the header of a file.
    """

    chat: str
    events: tuple[StoredEvent, ...]
    blobs: Mapping[str, bytes]
    mark: str


def redact(
    chat: str, events: Sequence[StoredEvent], blobs: Mapping[str, bytes], rules: RedactionRules, key: bytes
) -> Redacted:
    """Return a log with its content replaced and its names mapped.

    Args:
        chat: The chat's id.
        events: All events, as they were stored.
        blobs: Large contents by digest (hex). One that is not there is not there afterwards.
        rules: What stays.
        key: What all replacements follow from; at least ``streams.KEY_BYTES`` bytes that nobody can guess.

    Raises:
        KeyTooShort: The key is.
        RedactionError: An event was written under an older schema, or there are not enough texts of a size.
        EventsError: An event cannot be read.
        InvalidValue: An argument is not what it has to be.
    """
    checked_kind(chat, str, "$.chat", "a chat's id")
    events = list(checked_items(events, StoredEvent, "$.events", "stored events, as load_log(path).events are"))
    checked_mapping(blobs, "$.blobs", "contents by their digests")
    checked_kind(rules, RedactionRules, "$.rules", "what read_redaction_rules gives")
    checked_kind(key, bytes, "$.key", "bytes")
    work = _Redaction(events, blobs, rules, Streams(key))
    stored = tuple(work.event(each) for each in events)
    return Redacted(chat=work.names.of("chats", chat), events=stored, blobs=work.made, mark=mark_of(rules, key))


def mark_of(rules: RedactionRules, key: bytes) -> str:
    """Return the mark of logs that were redacted under rules and key: the same for the same, and no hint at either."""
    return Streams(key).take("rules", msgspec.json.encode(rules, order="sorted"), _MARK_BYTES).hex()


@final
class _Redaction:
    """The work on one log: replacements that were given, and the digest of the event before."""

    def __init__(
        self, events: Sequence[StoredEvent], blobs: Mapping[str, bytes], rules: RedactionRules, streams: Streams
    ) -> None:
        self.names: Final = Names(rules, streams, _declared(events))
        self._contents: Final = Contents(streams, frozenset(rules.keep_keys), avoided(rules.never))
        self._streams: Final = streams
        self._blobs: Final = blobs
        self.made: Final[dict[str, bytes]] = {}
        self._forms: dict[int, Form] = {}
        self._digest = GENESIS

    def event(self, stored: StoredEvent) -> StoredEvent:
        """Return the next event, redacted."""
        version = stored.envelope.version
        try:
            envelope, facts = self._envelope(stored.envelope), self._facts(stored)
            content = self._content(stored, version)
        except RedactionError as error:
            raise RedactionError(version, error.why) from None
        self._digest = chain(self._digest, envelope, facts, content)
        return StoredEvent(envelope=envelope, facts=facts, content=content, digest=self._digest)

    def text(self, kind: Kind, text: str) -> str:
        """Return what stands for a text of the facts."""
        return self.names.of(kind, text)

    def content(self, reference: Any, form: Form) -> Any:
        """Note what a content is taken for; places and sizes stay."""
        self._forms[reference[0]] = form
        return reference

    def _envelope(self, envelope: Envelope) -> Envelope:
        actor = envelope.actor
        if actor.id is not None:
            actor = Actor(kind=actor.kind, id=self.names.of(kind_of_actor(actor), actor.id))
        command = CommandId(self.names.of("commands", envelope.command))
        return replace(envelope, actor=actor, command=command)

    def _facts(self, stored: StoredEvent) -> bytes:
        cls = REGISTRY.find(stored.envelope.type, stored.envelope.schema, stored.envelope.version)
        if stored.envelope.schema != cls.schema:
            raise RedactionError(None, f"it was written under schema {stored.envelope.schema}, which is read alone")
        decode_places(stored)  # so that what is walked through has the form of its type
        self._forms = {}
        facts = msgspec.json.decode(stored.facts)
        walked = walk(cls, facts, self)
        return stored.facts if walked == facts else msgspec.json.encode(walked)

    def _content(self, stored: StoredEvent, version: int) -> bytes:
        salt = self._streams.take("salt", str(version), 16)
        items = parse_items(stored.content, f"version {version}")
        return encode_items([self._item(item, item_salt(salt, place), place) for place, item in enumerate(items)])

    def _item(self, item: Item, salt: bytes, place: int) -> Item:
        if isinstance(item.h, str):
            return Item(h=self._streams.take("erased", item.h, 32).hex())
        if isinstance(item.v, Raw):
            return Item(s=salt.hex(), v=Raw(self._contents.replace(bytes(item.v), self._form(place))))
        reference = str(item.b)
        value = self._blobs.get(reference)
        if value is None:
            return Item(s=salt.hex(), b=self._streams.take("blob", reference, 32).hex(), n=item.n)
        entry, digest = moved(salt.hex(), new := self._contents.replace(value, self._form(place)))
        self.made[digest] = new
        return entry

    def _form(self, place: int) -> Form:
        return self._forms.get(place, "text")


def _declared(events: Iterable[StoredEvent]) -> frozenset[str]:
    """Return the names of the tools that policies of a log declare."""
    policies = (stored for stored in events if stored.envelope.type == PolicyRecorded.type)
    recorded = (each.event for each in decode_each(policies, content=False))
    return frozenset(
        tool.name for event in recorded if isinstance(event, PolicyRecorded) for tool in event.policy.tools
    )
