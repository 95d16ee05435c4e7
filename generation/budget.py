"""How much of a tool's result a prompt may hold, and how a longer one is cut. Pure."""

from __future__ import annotations

from typing import Final

UNKNOWN_LIMIT_BUDGET: Final = 64 * 1024
"""Bytes of one result where the model's context limit is not known."""

MIN_BUDGET: Final = 16 * 1024
"""Bytes of one result that are always granted."""

_BYTES_PER_TOKEN: Final = 3
_SHARE: Final = 3
_MARKER_ROOM: Final = 256
_PLAIN_CUT: Final = 2 * _MARKER_ROOM


def result_budget(context_limit: int | None) -> int:
    """Return the bytes that one tool result may take: a third of the context, at three bytes per token.

    Args:
        context_limit: The model's context in tokens; None or nothing positive where it is not known.
    """
    if context_limit is None or context_limit <= 0:
        return UNKNOWN_LIMIT_BUDGET
    return max(MIN_BUDGET, context_limit // _SHARE * _BYTES_PER_TOKEN)


def truncate(text: str, budget: int) -> str:
    """Cut a text to a budget; its head and its tail are kept around a marker that states how many bytes are gone.

    Two thirds of the room go to the head. Under a budget too small for a marker the head alone is kept. Characters are
    never split.

    Args:
        text: Text without lone surrogates.
        budget: Bytes of UTF-8 that the result may take, 0 or more.

    Raises:
        ValueError: The budget is negative.
        UnicodeEncodeError: The text holds a lone surrogate.
    """
    if budget < 0:
        raise ValueError(f"a budget of {budget} bytes")
    data = text.encode()
    if len(data) <= budget:
        return text
    if budget <= _PLAIN_CUT:
        return _whole(data[:budget])
    room = budget - _MARKER_ROOM
    head_room = room * 2 // 3
    head = _whole(data[:head_room])
    tail = _whole(data[len(data) - (room - head_room) :])
    dropped = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}\n\n[... {dropped} bytes of this result were left out here ...]\n\n{tail}"


def _whole(data: bytes) -> str:
    """Decode a slice of valid UTF-8 without the characters that its ends cut."""
    return data.decode("utf-8", "ignore")
