"""Reasoning efforts: how much a model shall reason before it answers. Pure."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model reasons, from least to most."""

EFFORTS: Final[tuple[str, ...]] = get_args(Effort)


def rank(effort: str) -> int:
    """Return the place of an effort among all, from 0 for the least."""
    return EFFORTS.index(effort)


def effective_effort(chosen: str | None, default: str | None, most: str | None) -> str | None:
    """Return the effort that a model is asked with.

    Args:
        chosen: What the chat chose last; None, or a word that is no effort, where it chose none.
        default: What the model's configuration says,
        most: and what it allows at most.

    Returns:
        None where the configuration says nothing of efforts: what the chat chose does not count then.
    """
    if default is None or most is None:
        return None
    return min(chosen if chosen in EFFORTS else default, most, key=rank)
