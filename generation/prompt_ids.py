"""Ids and names of calls within a prompt, which every wire format takes whatever the model wrote. Pure.

Ids are unique although providers repeat theirs, and both are stable while messages are appended.
"""

from __future__ import annotations

import re
from typing import Final

from events.ids import CallKey

MAX_ID: Final = 64
"""Longest id that all wire formats take."""

MAX_NAME: Final = 64
"""Longest name of a tool that all wire formats take."""

UNNAMED: Final = "unnamed"
"""Name of a call for which the model wrote none."""

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]")
_VALID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_ID}}}")


def call_name(name: str) -> str:
    """Return the name of a call's tool as prompts have it; the name of a declared tool is never changed.

    A model may make up a name that its provider refuses in the next prompt. History keeps what the model wrote.

    Args:
        name: The name as the model wrote it.
    """
    return _ILLEGAL.sub("_", name)[:MAX_NAME] or UNNAMED


class CallIds:
    """Gives each call its id, in the order of the prompt.

    A provider's id is kept where it is well-formed and no call before it has it; otherwise one is made from the
    call's key. An id so depends on what stands before it alone, and never changes when messages are added: a
    provider's cached prefix survives.
    """

    __slots__ = ("_used",)

    def __init__(self) -> None:
        self._used: set[str] | None = None
        """The ids given; None where there are none: most of many chats that run have none."""

    def copy(self) -> CallIds:
        """Return another one that goes on from here by itself."""
        other = CallIds()
        other._used = set(self._used) if self._used else None
        return other

    def assign(self, key: CallKey, provider_call_id: str) -> str:
        """Return the id of the call ``key``, which its provider called ``provider_call_id``."""
        if self._used is None:
            self._used = set()
        chosen = provider_call_id
        if not _VALID.fullmatch(chosen) or chosen in self._used:
            chosen = "call_" + key.replace(".", "_")
            while chosen in self._used:
                chosen += "_"
        self._used.add(chosen)
        return chosen
