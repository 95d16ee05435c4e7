"""A sequence that is shared by its older and newer versions, so that appending costs the same at any length.

Appending to the newest version extends a list that older versions see a prefix of: they stay valid and cost nothing.
A branch that appends elsewhere copies its prefix once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Final, Self, TypeVar, overload

T = TypeVar("T")


class SharedSequence(Sequence[T]):
    """An immutable sequence with cheap append. Equal to another one, or a tuple, of equal items.

    Args:
        items: A list that nobody else changes.
        length: How many of its items belong to the sequence; None for all.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: list[T] | None = None, length: int | None = None) -> None:
        self._items: Final[list[T]] = [] if items is None else items
        self._length: Final[int] = len(self._items) if length is None else length

    def append(self, item: T) -> Self:
        """Return a sequence with ``item`` at its end."""
        items, length = self._items, self._length
        if len(items) == length:
            items.append(item)
            # Another thread may have appended between check and append: then the place is not ours, and we branch.
            if items[length] is item:
                return type(self)(items, length + 1)
        return type(self)([*items[:length], item])

    def extended(self, more: list[T]) -> Self:
        """Return a sequence with all of ``more`` at its end."""
        items, length = self._items, self._length
        whole = length + len(more)
        if len(items) == length:
            items += more
            # As above: where another thread came between, what stands here is not all ours.
            if len(items) == whole or all(map(operator.is_, more, items[length:whole])):
                return type(self)(items, whole)
        return type(self)([*items[:length], *more])

    def before(self, index: int) -> Self:
        """Return the first ``index`` items."""
        return type(self)(self._items, index)

    def since(self, index: int) -> list[T]:
        """Return the items from ``index`` on."""
        return self._items[index : self._length]

    def continues(self, older: SharedSequence[T]) -> bool:
        """Whether this begins with the very items of ``older``. At once where the two share their list."""
        length = older._length
        if length > self._length:
            return False
        if self._items is older._items:
            return True
        return all(map(operator.is_, older._items[:length], self._items))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        """Return the item at a place, or a tuple of those in a slice."""
        if isinstance(index, slice):
            return tuple(self._items[place] for place in range(*index.indices(self._length)))
        index = operator.index(index)
        if index < 0:
            index += self._length
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        items = self._items
        return (items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedSequence | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.since(0)!r})"
