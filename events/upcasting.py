"""Upcasting: how facts of an older schema become those of the newest, one small step per schema number, on read.

Stored bytes are never rewritten: digests and export go by what was written. A step sees facts as plain JSON data in
which a content stands as ``[place, bytes]``; it may move such a pair or name it twice, but content itself is out of
its reach. The registry ties types, schema numbers and steps together, so that a test can deploy later schemas over a
log that the first one wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias, final

from events.effects import EventBase
from events.errors import NewerSchema, UnknownEventType
from events.vocabulary import EVENT_TYPES

Facts: TypeAlias = "dict[str, Any]"
UpcastStep: TypeAlias = Callable[[Facts, int], Facts]
"""Takes facts of one schema and the number of the event's contents, returns the next schema's. May change its input."""

UPCASTS: Final[Mapping[str, Sequence[UpcastStep]]] = MappingProxyType({})
"""Event type -> its steps: the first leads from schema 1 to 2, the next to 3, and so on."""


@final
class Registry:
    """The event types that a codec reads, with their newest schemas and the steps that lead there.

    Args:
        types: One class per event type.
        steps: Event type -> steps in order.

    Raises:
        ValueError: A type without a class, a class twice, or a schema number that is not one more than the number of
            steps.
    """

    def __init__(self, types: Iterable[type[EventBase]], steps: Mapping[str, Sequence[UpcastStep]] = UPCASTS) -> None:
        classes = list(types)
        self.types: Final[Mapping[str, type[EventBase]]] = MappingProxyType({cls.type: cls for cls in classes})
        self.steps: Final[Mapping[str, tuple[UpcastStep, ...]]] = MappingProxyType(
            {cls.type: tuple(steps.get(cls.type, ())) for cls in classes}
        )
        self.bare: Final[dict[type[EventBase], Any]] = {}
        """The codec's decoders of facts alone."""
        self.idle: Final[list[Any]] = []
        """The codec's decoders that are not in use."""
        self.writers: Final[list[Any]] = []
        """The encoders of new events that are not in use."""
        if len(self.types) != len(classes):
            raise ValueError("two classes have the same event type")
        if unknown := sorted(steps.keys() - self.types.keys()):
            raise ValueError(f"steps for unknown event types: {', '.join(unknown)}")
        for cls in classes:
            count = len(self.steps[cls.type])
            if cls.schema != 1 + count:
                raise ValueError(f"{cls.type!r} is at schema {cls.schema} and has {count} upcast steps")

    def find(self, type_: str, schema: int, version: int | None = None) -> type[EventBase]:
        """Return the class that reads a stored event.

        Args:
            type_: The stored type.
            schema: The stored schema number.
            version: The event's version, for the error.

        Raises:
            UnknownEventType: No such type.
            NewerSchema: The schema is above the newest known.
        """
        cls = self.types.get(type_)
        if cls is None:
            raise UnknownEventType(type_, version)
        if schema > cls.schema:
            raise NewerSchema(type_, schema, cls.schema, version)
        return cls

    def upcast(self, type_: str, schema: int, facts: Facts, contents: int) -> Facts:
        """Return facts of the newest schema.

        Args:
            type_: A type that ``find`` accepted.
            schema: The schema that the facts were written under, from 1.
            facts: Plain JSON data; the steps may change it.
            contents: Number of contents that the event has.
        """
        for step in self.steps[type_][schema - 1 :]:
            facts = step(facts, contents)
        return facts


REGISTRY: Final = Registry(EVENT_TYPES.values())
"""All types of this release."""
