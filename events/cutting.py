"""How a value that is too long is cut: its head and its tail are kept. Pure."""

from __future__ import annotations

from typing import Final

from events.content import Json
from events.values import encode_json

_MARKER_ROOM: Final = 256
_PLAIN_CUT: Final = 2 * _MARKER_ROOM


def fit(value: Json, budget: int) -> Json:
    """Return a value that takes no more than ``budget`` bytes: itself, or its text (JSON text), cut (``truncate``)."""
    text = value if isinstance(value, str) else encode_json(value).decode()
    return value if len(text) * 4 <= budget or len(text.encode()) <= budget else truncate(text, budget)


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
