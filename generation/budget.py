"""How much of a tool's result a prompt may hold; how a longer one is cut is ``events.cutting``'s. Pure."""

from __future__ import annotations

from typing import Final

UNKNOWN_LIMIT_BUDGET: Final = 64 * 1024
"""Bytes of one result where the model's context limit is not known."""

MIN_BUDGET: Final = 16 * 1024
"""Bytes of one result that are always granted."""

_BYTES_PER_TOKEN: Final = 3
_SHARE: Final = 3


def result_budget(context_limit: int | None) -> int:
    """Return the bytes that one tool result may take: a third of the context, at three bytes per token.

    Args:
        context_limit: The model's context in tokens; None or nothing positive where it is not known.
    """
    if context_limit is None or context_limit <= 0:
        return UNKNOWN_LIMIT_BUDGET
    return max(MIN_BUDGET, context_limit // _SHARE * _BYTES_PER_TOKEN)
