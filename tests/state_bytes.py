"""A whole state as bytes, to compare states byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from events.content import Content
from events.state import ChatState
from events.transcript import Messages


def state_bytes(state: ChatState) -> bytes:
    """Return a whole state as bytes, contents included."""
    return msgspec.json.encode((state.control, state.transcript), enc_hook=_plain, order="deterministic")


def _plain(value: object) -> Any:
    match value:
        case Content():
            return {"content": value.value, "size": value.size} if value.available else {"absent": value.size}
        case Messages():
            return list(value)
        case Mapping():
            return dict(value)
        case _:
            raise TypeError(type(value).__name__)
