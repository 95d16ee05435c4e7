"""Chats whose runner, or the look at them, failed by an error that nobody expected: how long each is left alone.

One chat's fault must stop neither the worker nor its other chats. No I/O; the clock is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from events.ids import ChatId

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 60.0
"""Seconds that a chat is left alone after its first fault, doubled with each further one, and at most."""

_FORGOTTEN_AFTER: Final = 600.0


@dataclass(slots=True)
class _Fault:
    times: int = 0
    until: float = 0.0
    history_version: int | None = None
    deaths: int = 0


class ChatFaults:
    """Faults of chats, as one worker met them.

    Args:
        clock: Seconds of a clock that never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._faults: dict[ChatId, _Fault] = {}

    def note(self, chat: ChatId, history_version: int | None = None) -> float:
        """Take note of a fault; returns the seconds for which the chat is left alone.

        Args:
            chat: Which chat.
            history_version: The history that a runner died on; None where none had the chat.
        """
        self._forget_old()
        fault = self._faults.setdefault(chat, _Fault())
        if history_version is not None:
            fault.deaths = fault.deaths + 1 if fault.history_version == history_version else 1
            fault.history_version = history_version
        delay = min(FIRST_DELAY * 2.0 ** min(fault.times, 10), LONGEST_DELAY)
        fault.times += 1
        fault.until = self._clock() + delay
        return delay

    def deaths(self, chat: ChatId, history_version: int) -> int:
        """Return how many runners died on this history of the chat, one after the other."""
        fault = self._faults.get(chat)
        return fault.deaths if fault is not None and fault.history_version == history_version else 0

    def holds_back(self, chat: ChatId) -> bool:
        """Whether the chat is to be left alone now."""
        fault = self._faults.get(chat)
        return fault is not None and self._clock() < fault.until

    def held_back(self) -> tuple[ChatId, ...]:
        """Return the chats that are to be left alone now."""
        return tuple(chat for chat in self._faults if self.holds_back(chat))

    def forgive(self, chat: ChatId) -> None:
        """Forget the faults of a chat: it went well."""
        self._faults.pop(chat, None)

    def _forget_old(self) -> None:
        now = self._clock()
        for chat, fault in tuple(self._faults.items()):
            if now - fault.until > _FORGOTTEN_AFTER:
                del self._faults[chat]
