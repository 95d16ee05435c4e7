"""What differs between two values of ours: events, decisions, states, or parts of them, field by field.

Owns how a difference is named (a JSON path), what counts as one, and how it is said without any content: a content is
shown by its size alone, so that a difference may stand in a log, a ticket or a test's output.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from typing import Any, Final, cast

from msgspec import Struct

from events.content import Absent, Content
from events.paths import child, item
from events.shared import SharedSequence


class Missing(Enum):
    """Stands for a value that one side does not have: a key, an item, a part of a longer list."""

    MISSING = "nothing"


MISSING: Final = Missing.MISSING


class Change(Struct, frozen=True):
    """One thing that differs.

    Attributes:
        path: Where it stands, a JSON path from what was compared: ``$.decision.facts.steps``.
        before: What the first value has there, as it is; ``MISSING`` where it has nothing there.
        after: What the second value has there, likewise.
    """

    path: str
    before: object
    after: object

    def __str__(self) -> str:
        """Say it in a line, contents by their size alone: ``$.facts.steps: 3 -> 4``."""
        before, after = shown(self.before), shown(self.after)
        if before == after:
            after = f"another one of {after}"
        return f"{self.path}: {before} -> {after}"


def changes(before: object, after: object, *, ignore: Collection[str] = ()) -> Iterator[Change]:
    """Yield what differs between two values, in the order of their fields; nothing where they are equal.

    Structs of one type are compared field by field, mappings key by key, sequences place by place; numbers of
    different types (``1`` and ``True``) differ. A content differs from another by its value, size, or why it is absent.

    Args:
        before: The first value.
        after: The second one.
        ignore: Paths that are not looked at, nor what stands below them. A place in a sequence is written ``[]`` and
            means all of them: ``$.messages[].step.ended_at``.
    """
    yield from _compare(before, after, "$", "$", frozenset(ignore))


def plain(value: object) -> Any:
    """Return a value as JSON data, without any content.

    A content is ``{"bytes": size}``, and ``absent`` with why where it has no value; stored bytes are their number too.
    A struct has its tag under ``type``. What ``MISSING`` stands for is ``{"missing": true}``.
    """
    match value:
        case Content():
            size: dict[str, Any] = {"bytes": value.size}
            return size | {"absent": value.held.value} if isinstance(value.held, Absent) else size
        case bytes():
            return {"bytes": len(value)}
        case Missing():
            return {"missing": True}
        case Enum():
            return value.value
        case Struct():
            return {name: plain(each) for name, each in _fields(value)}
        case Mapping():
            return {str(key): plain(each) for key, each in value.items()}
        case _ if _is_sequence(value):
            return [plain(each) for each in cast("Sequence[object]", value)]
        case _:
            return value


def shown(value: object) -> str:
    """Return a value in a few words, contents by their size alone."""
    match value:
        case Content():
            return f"{value.size} B" + (f", {value.held.value}" if isinstance(value.held, Absent) else "")
        case bytes():
            return f"{len(value)} B"
        case Enum():
            return str(value.value)
        case Struct():
            return _braced((name, shown(each)) for name, each in _fields(value))
        case Mapping():
            return _braced((str(key), shown(each)) for key, each in value.items())
        case _ if _is_sequence(value):
            return f"[{', '.join(map(shown, cast('Sequence[object]', value)))}]"
        case None | bool():
            return _WORDS[value]
        case _:
            return repr(value)


_WORDS: Final[Mapping[bool | None, str]] = {None: "none", True: "true", False: "false"}


def _braced(fields: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{name}: {said}" for name, said in fields) + "}"


def _fields(value: Struct) -> Iterator[tuple[str, object]]:
    if (tag := value.__struct_config__.tag) is not None:
        yield "type", tag
    for name in value.__struct_fields__:
        yield name, getattr(value, name)


def _compare(before: object, after: object, path: str, general: str, ignore: frozenset[str]) -> Iterator[Change]:
    """Compare two values at ``path``; ``general`` is the path with every place in a sequence left open."""
    if before is after or general in ignore:
        return
    if isinstance(before, Struct) and type(before) is type(after):
        for name in before.__struct_fields__:
            one, other = getattr(before, name), getattr(after, name)
            if one is not other:
                yield from _compare(one, other, child(path, name), child(general, name), ignore)
    elif isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in (*before, *(key for key in after if key not in before)):
            one, other = before.get(key, MISSING), after.get(key, MISSING)
            yield from _compare(one, other, child(path, str(key)), child(general, str(key)), ignore)
    elif _is_sequence(before) and _is_sequence(after):
        start = _common(before, after)
        pairs = zip_longest(_since(before, start), _since(after, start), fillvalue=MISSING)
        for place, (one, other) in enumerate(pairs, start):
            yield from _compare(one, other, item(path, place), f"{general}[]", ignore)
    elif type(before) is not type(after) or before != after:
        yield Change(path, before, after)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _common(before: Any, after: Any) -> int:
    """Return how many items at the beginning are known to be the same ones: histories of one fold share theirs."""
    if not (isinstance(before, SharedSequence) and isinstance(after, SharedSequence)):
        return 0
    shorter, longer = sorted((before, after), key=len)
    return len(shorter) if longer.continues(shorter) else 0


def _since(value: Any, start: int) -> Sequence[object]:
    found: Sequence[object] = value.since(start) if isinstance(value, SharedSequence) else value
    return found
