"""Values that many chats have alike, kept once for all of them: a process that holds many would keep each for each."""

from __future__ import annotations

from typing import Final, Generic, TypeVar, final

K = TypeVar("K")
V = TypeVar("V")


@final
class Shared(Generic[K, V]):
    """Equal values by what they are known by.

    A cache, not a state: what is asked for is what is given, or equals it.

    Args:
        most: Values that are kept; beyond that all are forgotten, and those in use are found again.
    """

    __slots__ = ("_known", "_most")

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._known: Final[dict[K, V]] = {}

    def of(self, key: K, value: V) -> V:
        """Return the value that others have under ``key`` if it equals ``value``, else ``value`` itself."""
        known = self._known.setdefault(key, value)
        if len(self._known) > self._most:
            self._known.clear()
        return known if known == value else value


_NAMES: Final = Shared[str, str](most=1024)


def share_name(name: str) -> str:
    """Return the text that others have where they name the same: for names of which a process has few."""
    return _NAMES.of(name, name)
