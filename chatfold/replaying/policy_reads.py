"""What decisions read of policies: noted while they are taken, or asked of the rules themselves. Pure.

A field is named by its path: ``max_steps``, ``model.context_limit``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Struct, structs

from events.control import Control, Indexes
from events.ids import MessageId
from events.records import Budget, ModelPolicy, Policy
from generation.decide import RULES

MODELS: Final = ("model", "compaction_model")
"""Fields that are models, of which decisions read some fields."""

_S = TypeVar("_S", bound=Struct)


class Reads:
    """Notes what is read of policies.

    Attributes:
        fields: The paths of what was read.
        changed: The paths of what differs between policies and those that they were made of.
    """

    def __init__(self) -> None:
        self.fields: Final[set[str]] = set()
        self.changed: Final[set[str]] = set()
        self._kinds: Final = {name: _watched(ModelPolicy, f"{name}.", self.fields) for name in MODELS}
        self._policy: Final = _watched(Policy, "", self.fields)
        self._made: Final[dict[tuple[int, int], tuple[Policy, Policy, Policy]]] = {}  # by identity: there are few

    def watched(self, policy: Policy, before: Policy) -> Policy:
        """Return a policy that notes what is read of it, made of another one."""
        kept = self._made.get((id(policy), id(before)))
        if kept is None:
            self.changed.update(changed(before, policy))
            given = {name: getattr(policy, name) for name in MODELS}
            models = {name: _as(self._kinds[name], model) for name, model in given.items() if model is not None}
            kept = (policy, before, _as(self._policy, policy, **models))
            self._made[id(policy), id(before)] = kept
        return kept[2]

    @property
    def unread(self) -> tuple[str, ...]:
        """What differs, and was not read."""
        return tuple(sorted(self.changed - self.fields))


def _watched(kind: type[_S], prefix: str, read: set[str]) -> type[_S]:
    """Return a kind of record that notes what is read of it."""
    names = frozenset(kind.__struct_fields__)

    def noted(self: object, name: str) -> object:
        if name in names:
            read.add(prefix + name)
        return object.__getattribute__(self, name)

    namespace = {"__getattribute__": noted}
    return cast(
        "type[_S]",
        msgspec.defstruct(kind.__name__, [], bases=(kind,), namespace=namespace, frozen=True, kw_only=True),
    )


def _as(kind: type[_S], record: _S, **others: Any) -> _S:
    return kind(**{**structs.asdict(record), **others})


def changed(before: Policy, after: Policy) -> Iterator[str]:
    """Yield what differs between two policies; of models that both have, field by field."""
    for name in Policy.__struct_fields__:
        one, other = getattr(before, name), getattr(after, name)
        if name in MODELS and one is not None and other is not None:
            yield from (
                f"{name}.{each}" for each in ModelPolicy.__struct_fields__ if getattr(one, each) != getattr(other, each)
            )
        elif one != other:
            yield name


@cache
def read_by_rules() -> tuple[str, ...]:
    """Return all that the rules can read of a policy, in the order of its fields.

    Each rule is asked, whether or not one before it holds, over a policy and a history that have all that may be left
    out: nothing that a rule could read is passed by.
    """
    reads = Reads()
    policy = reads.watched(_WHOLE, _WHOLE)
    for rule in RULES:
        rule.holds(_HISTORY, policy)
        if rule.reads is not None:
            rule.reads(_HISTORY, policy, {})
    return tuple(path for path in all_paths() if path in reads.fields)


def all_paths() -> Iterator[str]:
    """Yield the path of each field of a policy."""
    for name in Policy.__struct_fields__:
        yield name
        if name in MODELS:
            yield from (f"{name}.{each}" for each in ModelPolicy.__struct_fields__)


_LIMITED: Final = ModelPolicy(provider="provider", name="model", context_limit=10)
_WHOLE: Final = Policy(
    agent="agent",
    revision="1",
    model=_LIMITED,
    compaction_model=_LIMITED,
    budget=Budget(tokens=1, cost_micros=1, turns=1),
    context_source="files",
    context_revision="1",
)
_HISTORY: Final = Control(
    indexes=Indexes(
        boundary=MessageId("m1"), context_tokens=9, first_context_tokens=9, visible_after=1, context_source="files"
    )
)
