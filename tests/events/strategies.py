"""Hypothesis strategies for events, derived from the types of their fields: new ones are covered without a change."""

from __future__ import annotations

import types
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st
from msgspec import Struct

from events.content import Content, Json
from events.records import Budget
from events.vocabulary import EVENT_TYPES, Event
from tests.events.logs import Draft

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.none() | st.integers(0, 2**63 - 1)
TIMES = st.integers(0, 2**53)

JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CONTENTS = (TEXTS | JSON).map(Content)

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: INTEGERS,
    bool: st.booleans(),
    None: st.none(),
    types.NoneType: st.none(),
    Content: CONTENTS,
    Budget: st.fixed_dictionaries({}, optional=dict.fromkeys(Budget.__struct_fields__, COUNTS)).map(
        lambda given: Budget(**given)
    ),
}


def of_type(annotation: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a field's type."""
    if hasattr(annotation, "__supertype__"):
        return of_type(annotation.__supertype__)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([of_type(arg) for arg in args])
    if origin is tuple:
        return st.lists(of_type(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(of_type(args[0]), of_type(args[1]), max_size=2)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return st.deferred(lambda: structs(annotation))
    msg = f"no strategy for {annotation!r}"
    raise TypeError(msg)


def structs(cls: type[Struct]) -> st.SearchStrategy[Any]:
    """Return a strategy for a struct: required fields always, the others now and then."""
    fields = msgspec.structs.fields(cls)
    required = {field.encode_name: of_type(field.type) for field in fields if field.required}
    optional = {field.encode_name: of_type(field.type) for field in fields if not field.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda values: cls(**values))


EVENTS: st.SearchStrategy[Event] = st.one_of([structs(cls) for cls in EVENT_TYPES.values()])
"""Any event of any type; not one that a chat's state would allow."""

DRAFTS: st.SearchStrategy[Draft] = structs(Draft)
"""Envelope fields that a caller chooses."""
