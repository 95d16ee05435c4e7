"""Ids of calls within a prompt: unique although providers repeat theirs, stable while messages are appended. Pure."""

from __future__ import annotations

import re
from typing import Final

from events.ids import CallKey

MAX_ID: Final = 64
"""Longest id that all wire formats take."""

_VALID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_ID}}}")


class CallIds:
    """Gives each call its id, in the order of the prompt.

    A provider's id is kept where it is well-formed and no call before it has it; otherwise one is made from the
    call's key. An id so depends on what stands before it alone, and never changes when messages are added: a
    provider's cached prefix survives.
    """

    def __init__(self) -> None:
        self._used: set[str] = set()

    def assign(self, key: CallKey, provider_call_id: str) -> str:
        """Return the id of the call ``key``, which its provider called ``provider_call_id``."""
        chosen = provider_call_id
        if not _VALID.fullmatch(chosen) or chosen in self._used:
            chosen = "call_" + key.replace(".", "_")
            while chosen in self._used:
                chosen += "_"
        self._used.add(chosen)
        return chosen
