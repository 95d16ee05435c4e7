"""What each text in the facts of a log is: a name that somebody gave, or chatfold's own word.

Owns the table of kinds, and a walk over the JSON of facts (an event's, or control) that hands out each text with its
kind, and each content with what it is. A text that nobody classed is an error, so a new field is classed before it can
leak. Pure.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, Protocol, TypeAlias, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from chatfold.redacting.content import Form
from events.content import Content
from events.ids import CallKey, MessageId, WorkerId
from events.records import Actor

Kind: TypeAlias = Literal[
    "tools", "agents", "models", "users", "chats", "commands", "calls", "responses", "sources", "labels", "paths",
    "files", "errors", "hooks", "contexts", "revisions", "digests", "facts", "own",
]  # fmt: skip
"""What a text in a fact is.

``calls`` and ``responses`` are ids that providers gave, and ids of messages that are none of chatfold's, ``paths`` JSON
paths of what was repaired, ``files`` media types and operating systems, ``contexts`` names and revisions of context
sources, ``revisions`` those of agents, ``facts`` texts in decisions that no rule of this release records. ``own`` are
chatfold's: rules, releases, ids of workers.
"""

OWN: Final[Kind] = "own"
"""The kind of texts that always stay."""

_FIELDS: Final[Mapping[str, Kind]] = {
    "chat": "chats",
    "parent": "chats",
    "owner": "users",
    "author": "users",
    "agent": "agents",
    "revision": "contexts",
    "source": "contexts",
    "context_source": "contexts",
    "context_revision": "contexts",
    "model": "models",
    "provider": "models",
    "effort": "models",
    "effort_max": "models",
    "labels": "labels",
    "active_tools": "tools",
    "tools": "tools",
    "provider_call_id": "calls",
    "response_id": "responses",
    "continued": "responses",
    "lost_response": "responses",
    "source_id": "sources",
    "repaired": "paths",
    "media_type": "files",
    "os": "files",
    "digest": "digests",
    "schema": "digests",
    "system": "digests",
    "messages": "digests",
    "options": "digests",
    "before": "digests",
    "policy": "digests",
    "release": OWN,
    "rule": OWN,
    "action": OWN,
    "passed": OWN,
}
"""Kinds by the name of the field, where it means the same wherever it stands."""

_PLACES: Final[Mapping[tuple[str, str], Kind]] = {
    ("ErrorInfo", "kind"): "errors",
    ("HookContextPart", "event"): "hooks",
    ("ModelPolicy", "name"): "models",
    ("OpenCall", "name"): "tools",
    ("Policy", "revision"): "revisions",
    ("RequestDigests", "tools"): "digests",
    ("ToolCallPart", "name"): "tools",
    ("ToolPolicy", "name"): "tools",
}
"""Kinds by struct and field, where the name alone does not tell."""

_DECIDED: Final[Mapping[str, Kind]] = {
    "model": "models",
    "source": "contexts",
    "recorded": "contexts",
    "recorded_source": "contexts",
    "wanted": "contexts",
    "last": OWN,
    "compaction": OWN,
    "answer": OWN,
}
"""Kinds of the texts among the facts of a decision, by their names; any other is of kind ``facts``."""

_FORMS: Final[Mapping[tuple[str, str], Form]] = {("FilePart", "data"): "file"}
_PLACES_IN_LOG: Final = (MessageId, CallKey)
"""Ids that follow from where a message or a call stands in the log: they are numbers."""
_PLACE: Final = re.compile(r"[0-9]{1,10}(\.[0-9]{1,10}){1,2}")
"""Such an id; a text that is none was somebody else's, in a log that something else wrote."""


class Unclassed(LookupError):
    """A field of text that the table does not know."""


class Visitor(Protocol):
    """Is shown what stands in facts, and says what shall stand there."""

    def text(self, kind: Kind, text: str) -> str:
        """Return what stands for a text."""
        ...

    def content(self, reference: Any, form: Form) -> Any:
        """Return what stands for a reference to a content."""
        ...


_Walk: TypeAlias = Callable[[Any, Visitor], Any]


def walk(cls: type[Struct], facts: Any, visitor: Visitor) -> Any:
    """Return facts, given as decoded JSON of a struct, with what a visitor says in the place of texts and contents.

    Raises:
        Unclassed: A field of text is not in the table.
    """
    return _of_struct(cls)(facts, visitor)


def kind_of_actor(actor: Actor) -> Kind:
    """Return the kind of an actor's id."""
    return OWN if actor.kind == "worker" else "users"


@cache
def _of_struct(cls: type[Struct]) -> _Walk:
    hints = get_type_hints(cls)
    written = zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
    walks = {name: found for field, name in written if (found := _of_type(hints[field], cls, field)) is not None}

    def through(facts: Any, visitor: Visitor) -> Any:
        return {name: walks[name](each, visitor) if name in walks else each for name, each in facts.items()}

    return through


def _of_type(hint: Any, cls: type[Struct], field: str) -> _Walk | None:
    """Return how to walk through a value of a type; None where there is neither text nor content in it."""
    if hint in _PLACES_IN_LOG:
        return _placed
    if hint is WorkerId:
        return _told(OWN)
    if hasattr(hint, "__supertype__"):
        return _of_type(hint.__supertype__, cls, field)
    if hint is str:
        return _of_text(cls, field)
    if hint is Content:
        form: Form = _FORMS.get((cls.__name__, field), "text")
        return lambda reference, visitor: visitor.content(reference, form)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal or hint in (int, bool, float, types.NoneType):
        return None
    if origin in (Union, types.UnionType):
        return _of_union(args, cls, field)
    if origin is tuple:
        return _each(_of_type(args[0], cls, field))
    if origin is dict:
        return _of_mapping(cls, field)
    if issubclass(hint, Enum):
        return None
    return _of_struct(hint)


def _of_text(cls: type[Struct], field: str) -> _Walk | None:
    kind = _PLACES.get((cls.__name__, field)) or _FIELDS.get(field)
    if kind is None:
        raise Unclassed(f"{cls.__name__}.{field} is a text of no kind")
    return _told(kind)


def _told(kind: Kind) -> _Walk:
    return lambda text, visitor: visitor.text(kind, text)


def _placed(place: str, visitor: Visitor) -> str:
    return place if _PLACE.fullmatch(place) else visitor.text("calls", place)


def _of_union(args: tuple[Any, ...], cls: type[Struct], field: str) -> _Walk | None:
    members = [each for each in args if each is not types.NoneType]
    if len(members) == 1:
        inner = _of_type(members[0], cls, field)
        return None if inner is None else lambda value, visitor: None if value is None else inner(value, visitor)
    tagged = {each.__struct_config__.tag: each for each in members}
    return lambda part, visitor: _of_struct(tagged[part["kind"]])(part, visitor)


def _each(inner: _Walk | None) -> _Walk | None:
    return None if inner is None else lambda items, visitor: [inner(item, visitor) for item in items]


def _of_mapping(cls: type[Struct], field: str) -> _Walk:
    if cls.__name__ == "Decision":
        return lambda facts, visitor: {name: _decided(name, fact, visitor) for name, fact in facts.items()}
    kind = _FIELDS.get(field)
    if kind is None:
        raise Unclassed(f"{cls.__name__}.{field} has texts of no kind")
    return lambda named, visitor: {visitor.text(kind, name): visitor.text(kind, value) for name, value in named.items()}


def _decided(name: str, fact: Any, visitor: Visitor) -> Any:
    return visitor.text(_DECIDED.get(name, "facts"), fact) if isinstance(fact, str) else fact
