"""Which release levels can read an event: what was added to the vocabulary since the first level, and by what. Pure.

A release that does not know a field, a part kind or an event type refuses the event. So what is new is written only
into chats of its level or above; which level a chat has, and a database, is the store's matter (``store.schema``).
What a reader needs is said in one table, ``SINCE``; all else here follows from it and from the types of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, final, get_args

from msgspec import NODEFAULT, UNSET, Struct
from msgspec.structs import FieldInfo, fields, replace

from events.control import Control, Indexes, OpenCall
from events.envelope import Recorded
from events.messages import KeptResponse, Step
from events.parts import ContextProblemPart, HookContextPart, SkillPart, ToolCallPart, ToolResultPart
from events.records import ActionItem, Decision, ModelPolicy, OpenAction, Policy, Spending, Spent, ToolPolicy
from events.vocabulary_keeping import ActiveToolsChanged, ChatForked, ContextMarked, SideCallRecorded, TurnLabelChanged
from events.vocabulary_workers import Acquired, ActionRequired, Released, TurnFailed

FIRST: Final = 1
"""The level of the first release."""

RECONCILE: Final = 2
"""The level from which tools and calls may say that they can be asked (``reconcile``)."""

GENERATION: Final = 3
"""The level from which steps, tools and chats say all that the full generation rules need."""

NEWEST: Final = GENERATION
"""The level that has all of the vocabulary."""

Since: TypeAlias = Mapping[type[Struct] | tuple[type[Struct], str], int]
"""A type, or a field of one (of its heirs too) -> the level from which releases know it."""

SINCE: Final[Since] = MappingProxyType(
    {
        (ToolPolicy, "reconcile"): RECONCILE,
        (ToolCallPart, "reconcile"): RECONCILE,
        (OpenCall, "reconcile"): RECONCILE,
        (OpenCall, "possibly_done"): RECONCILE,
        (Step, "unmetered"): GENERATION,
        (Step, "context_tokens"): GENERATION,
        (Step, "kept"): GENERATION,
        (Step, "continued"): GENERATION,
        KeptResponse: GENERATION,
        (Control, "lost_response"): GENERATION,
        (ModelPolicy, "effort_max"): GENERATION,
        (ModelPolicy, "options"): GENERATION,
        (ToolPolicy, "action_timeout_us"): GENERATION,
        (ToolPolicy, "action_on_expiry"): GENERATION,
        (ToolCallPart, "action_timeout_us"): GENERATION,
        (ToolCallPart, "action_on_expiry"): GENERATION,
        (ToolCallPart, "created_at"): GENERATION,
        (OpenCall, "action_timeout_us"): GENERATION,
        (OpenCall, "action_on_expiry"): GENERATION,
        (ToolResultPart, "media"): GENERATION,
        (ToolResultPart, "attachments"): GENERATION,
        (ToolResultPart, "rewritten"): GENERATION,
        ActiveToolsChanged: GENERATION,
        (ChatForked, "active_tools"): GENERATION,
        (Control, "active_tools"): GENERATION,
        (ActionRequired, "result_budget"): GENERATION,
        (OpenAction, "result_budget"): GENERATION,
        (ActionItem, "spending"): GENERATION,
        Spending: GENERATION,
        Spent: GENERATION,
        (ToolResultPart, "context"): GENERATION,
        (Indexes, "nudged"): GENERATION,
        (Indexes, "more_step"): GENERATION,
        HookContextPart: GENERATION,
        SkillPart: GENERATION,
        ContextProblemPart: GENERATION,
        ContextMarked: GENERATION,
        TurnLabelChanged: GENERATION,
        SideCallRecorded: GENERATION,
        (Control, "context_stale_since"): GENERATION,
        (Control, "context_refresh_at"): GENERATION,
        (Decision, "read"): GENERATION,
        (Policy, "retry_unit_us"): GENERATION,
        (Acquired, "again"): GENERATION,
        (Released, "again"): GENERATION,
        (TurnFailed, "again"): GENERATION,
    }
)
"""What came after the first level: event types, part kinds, records, and fields of these, one line each.

A field that came later has a default, which is not written: an event whose field is at its default needs no level.
What is derived from events and kept beside them (``events.control``) may need no more than they do. A new word of a
field that is older, such as one more finish reason, is not covered: no table row says when it came.
"""

T = TypeVar("T", bound=Struct)


class _Place(NamedTuple):
    """A field that matters: it came after the first level itself, or what it holds may have."""

    name: str
    level: int
    default: Any

    def says(self, held: object) -> bool:
        """Whether an encoder writes it: a default is known by identity, an empty collection as such."""
        return held is not self.default and not (type(held) is type(self.default) in (list, dict, set) and not held)


class _Kind(NamedTuple):
    """What matters of a type, found out once: its own level, and its fields that matter."""

    level: int
    places: tuple[_Place, ...]


@final
class Levels:
    """What the table ``since`` says of values: events, and all that they hold."""

    __slots__ = ("_known", "_since")

    def __init__(self, since: Since) -> None:
        self._since: Final = since
        self._known: Final[dict[type[Struct], _Kind]] = {}

    def since(self, cls: type[Struct], name: str | None = None) -> int:
        """Return the level from which releases know a type, or its field ``name``."""
        keys = cls.__mro__ if name is None else ((base, name) for base in cls.__mro__)
        return max(self._since.get(key, FIRST) for key in keys)

    def of(self, value: object) -> int:
        """Return the lowest level of releases that can read a value."""
        if isinstance(value, Struct):
            level, places = self._kind(type(value))
            for place in places:
                held = getattr(value, place.name)
                if place.says(held):
                    level = max(level, place.level, self.of(held))
            return level
        if isinstance(value, Mapping):
            return max(map(self.of, value.values()), default=FIRST)
        if isinstance(value, tuple | list):
            return max(map(self.of, value), default=FIRST)
        return FIRST

    def readable(self, value: T, level: int) -> T:
        """Return a value without what releases of ``level`` do not know; the value itself where it has nothing of it.

        Fields go back to their defaults, and collections lose the items whose type is not known.

        Raises:
            ValueError: The type is not known, or that of what a field holds that must be there.
        """
        cls = type(value)
        since, places = self._kind(cls)
        if since > level:
            raise ValueError(f"{cls.__name__} is known from level {since} on, not at {level}")
        changes = {}
        for place in places:
            held = getattr(value, place.name)
            if not place.says(held):
                continue
            kept = self._kept(held, level) if place.level <= level else UNSET
            if kept is UNSET and place.default is NODEFAULT:
                raise ValueError(f"{cls.__name__} needs its {place.name}, which is not known at level {level}")
            if kept is not held:
                changes[place.name] = place.default if kept is UNSET else kept
        return replace(value, **changes) if changes else value

    def _kept(self, held: Any, level: int) -> Any:
        """Return what stays of what a field or a collection holds; UNSET where it goes."""
        if isinstance(held, Struct):
            return UNSET if self.since(type(held)) > level else self.readable(held, level)
        if isinstance(held, Mapping):
            kept = {key: each for key, item in held.items() if (each := self._kept(item, level)) is not UNSET}
            return held if len(kept) == len(held) and all(kept[key] is held[key] for key in held) else kept
        if isinstance(held, tuple | list):
            items = type(held)(each for item in held if (each := self._kept(item, level)) is not UNSET)
            return held if len(items) == len(held) and all(map(lambda a, b: a is b, items, held)) else items
        return held

    def _kind(self, cls: type[Struct]) -> _Kind:
        known = self._known.get(cls)
        if known is None:
            places = (
                _Place(info.name, level, default_of(info))
                for info in _fields(cls)
                if (level := self.since(cls, info.name)) > FIRST or any(map(self._later, structs_in(info.type)))
            )
            known = self._known[cls] = _Kind(self.since(cls), tuple(places))
        return known

    def _later(self, cls: type[Struct]) -> bool:
        """Whether a type came after the first level, or a field of it."""
        return self.since(cls) > FIRST or any(self.since(cls, info.name) > FIRST for info in _fields(cls))


def default_of(info: FieldInfo) -> Any:
    """Return a field's default; ``NODEFAULT`` where it has none."""
    return info.default if info.default_factory is NODEFAULT else info.default_factory()


def structs_in(*annotations: Any) -> tuple[type[Struct], ...]:
    """Return all structs that values of some types can hold, these among them, in the order in which they are met."""
    found: dict[type[Struct], None] = {}
    for annotation in annotations:
        _reach(annotation, found)
    return tuple(found)


def _reach(annotation: Any, found: dict[type[Struct], None]) -> None:
    if isinstance(annotation, type) and issubclass(annotation, Struct) and annotation not in found:
        found[annotation] = None
        for info in _fields(annotation):
            _reach(info.type, found)
    for argument in get_args(annotation):
        _reach(argument, found)


@cache
def _fields(cls: type[Struct]) -> tuple[FieldInfo, ...]:
    return fields(cls)


LEVELS: Final = Levels(SINCE)
"""What this release says of values."""


def known_at(level: int, cls: type[Struct]) -> bool:
    """Whether releases of ``level`` know a type: of an event, a part, or a record."""
    return LEVELS.since(cls) <= level


def level_of(value: Struct) -> int:
    """Return the lowest level of releases that can read an event, or a record."""
    return LEVELS.of(value)


def level_of_all(log: Iterable[Recorded]) -> int:
    """Return the lowest level of releases that can read all of some events."""
    return max((level_of(recorded.event) for recorded in log), default=FIRST)


def readable_at(value: T, level: int) -> T:
    """Return an event or a record without what releases of ``level`` cannot read (``Levels.readable``)."""
    return LEVELS.readable(value, level)
