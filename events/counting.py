"""Counted things in words: ``1 turn``, ``2 turns``, ``1,200 turns``. Pure."""

from __future__ import annotations


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return how many there are of something, with its noun.

    Args:
        count: How many.
        one: The noun of one of them.
        many: That of several; None where an s is put to it.
    """
    return f"{count:,} {plural(count, one, many)}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return the noun, or the verb, that stands with a count."""
    return one if count == 1 else f"{one}s" if many is None else many
