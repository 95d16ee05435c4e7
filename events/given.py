"""Checks of what callers give to functions that read logs: one value, several of a kind, and the events of one log.

Each names the argument, what it must be and what it is, so that a wrong one is refused where it was given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from events.envelope import Recorded
from events.errors import InvalidValue
from events.values import LARGEST

T = TypeVar("T")

_EVENTS: Final = "the events of a log, as decode_log(load_log(path)) gives them"


def called(value: object, *, shown: bool = False) -> str:
    """Return what an error calls a value: a class by its name, another by its type, or by what it shows of itself."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return repr(value) if shown else type(value).__name__


def checked_kind(value: object, kind: type[T], path: str, wanted: str) -> T:
    """Return a value of a class.

    Raises:
        InvalidValue: It is of another one; ``wanted`` says what it should be.
    """
    if not isinstance(value, kind):
        raise InvalidValue(path, f"must be {wanted}, not {type(value).__name__}")
    return value


def checked_seconds(value: object, path: str) -> float:
    """Return a time in seconds.

    Raises:
        InvalidValue: It is no number, negative, or so long that nothing of ours counts so far.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidValue(path, f"must be a number of seconds, not {called(value)}")
    if not 0 <= value <= LARGEST // 1_000_000:
        raise InvalidValue(path, f"must be seconds, at least 0 and no more than can be counted, not {value}")
    return value


def checked_among(value: T, known: Collection[T], path: str) -> T:
    """Return one of some known words.

    Raises:
        InvalidValue: It is none of them; the text has those that there are.
    """
    if value not in tuple(known):
        raise InvalidValue(path, f"must be one of {', '.join(map(str, known))}, not {called(value, shown=True):.80}")
    return value


def checked_sequence(value: object, path: str, wanted: str) -> None:
    """Check that a value has items in order, and is no text.

    Raises:
        InvalidValue: It is not so; ``wanted`` says what it should be.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise InvalidValue(path, f"must be {wanted}, not {type(value).__name__}")


def checked_mapping(value: object, path: str, wanted: str) -> None:
    """Check that a value is a mapping.

    Raises:
        InvalidValue: It is not; ``wanted`` says what it should be.
    """
    if not isinstance(value, Mapping):
        raise InvalidValue(path, f"must be {wanted}, not {type(value).__name__}")


def checked_items(values: Iterable[T], kind: type[T], path: str, wanted: str) -> Iterator[T]:
    """Yield values of a class, each checked when it is asked for.

    Raises:
        InvalidValue: They are nothing that has items, a text or a mapping; or one is of another class, and which.
    """
    given: object = values
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidValue(path, f"must be {wanted}, not {type(given).__name__}")
    for at, value in enumerate(values):
        if not isinstance(value, kind):
            raise InvalidValue(f"{path}[{at}]", f"must be {kind.__name__}, not {type(value).__name__}; give {wanted}")
        yield value


def checked_events(events: Iterable[Recorded], path: str = "$.events") -> Iterator[Recorded]:
    """Yield events, each checked when it is asked for; whether they follow each other is not looked at.

    Raises:
        InvalidValue: They are no events.
    """
    return checked_items(events, Recorded, path, _EVENTS)


def one_log(events: Iterable[Recorded], after: int = 0, path: str = "$.events") -> Iterator[Recorded]:
    """Yield the events of a log in order, each checked when it is asked for.

    Args:
        events: What was given.
        after: The version behind which they begin.
        path: The argument's name, for errors.

    Raises:
        InvalidValue: They are no events, or not those of one log without a gap.
    """
    for at, recorded in enumerate(checked_events(events, path)):
        if recorded.version != after + 1:
            missing = recorded.version > after
            why = "events are missing" if missing else "these are the events of two logs, or not in order"
            raise InvalidValue(f"{path}[{at}]", f"version {recorded.version} follows version {after}: {why}")
        after = recorded.version
        yield recorded
