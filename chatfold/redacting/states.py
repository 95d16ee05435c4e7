"""Whether the states of two logs are the same but for names; what neither log changed is not compared again. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias, final

import msgspec
from msgspec import Struct

from chatfold.redacting.facts import Visitor, walk
from events.control import Control, Indexes, OpenCall, encode_facts
from events.ids import CallKey

_Pair: TypeAlias = tuple[object, object]


@final
class StatePairs:
    """The states of a log and of its redacted form, event by event.

    An event changes few fields of a state, and of many open calls one: the others are what they were, and equal.

    Args:
        names: Says what stands for each text of the log.
    """

    def __init__(self, names: Visitor) -> None:
        self._names: Final = names
        self._fields: Final[dict[tuple[type[Struct], str], _Pair]] = {}
        self._calls: Final[dict[CallKey, _Pair]] = {}

    def same(self, one: Control, other: Control) -> bool:
        """Whether the redacted log's next state is that of the log, by other names."""
        calls = (one.indexes.open_calls, other.indexes.open_calls)
        return (
            self._same_fields(Control, one, other, apart="indexes")
            and self._same_fields(Indexes, one.indexes, other.indexes, apart="open_calls")
            and (not self._is_new(Indexes, "open_calls", calls) or self._same_calls(*calls))
        )

    def _same_fields(self, cls: type[Struct], one: Struct, other: Struct, *, apart: str) -> bool:
        pairs = {name: (getattr(one, name), getattr(other, name)) for name in cls.__struct_fields__ if name != apart}
        new = {name: pair for name, pair in pairs.items() if self._is_new(cls, name, pair)}
        was, now = ({name: _plain(pair[side]) for name, pair in new.items()} for side in (0, 1))
        return self._becomes(cls, was, now)

    def _is_new(self, cls: type[Struct], name: str, pair: _Pair) -> bool:
        before = self._fields.get((cls, name))
        self._fields[cls, name] = pair
        return before is None or before[0] is not pair[0] or before[1] is not pair[1]

    def _same_calls(self, one: Sequence[OpenCall], other: Sequence[OpenCall]) -> bool:
        return len(one) == len(other) and all(map(self._same_call, one, other))

    def _same_call(self, one: OpenCall, other: OpenCall) -> bool:
        before = self._calls.get(one.key)
        if before is not None and before[0] is one and before[1] is other:
            return True
        self._calls[one.key] = (one, other)
        return self._becomes(OpenCall, _plain(one), _plain(other))

    def _becomes(self, cls: type[Struct], was: Any, now: Any) -> bool:
        return bool(walk(cls, was, self._names) == now)


def _plain(value: object) -> Any:
    return msgspec.json.decode(encode_facts(value))
