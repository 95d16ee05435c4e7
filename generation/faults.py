"""Chats that do harm: how long each is left alone after a fault, and which one may be tried now. No I/O.

One chat's fault must stop neither the worker nor its other chats. Where the look at a chat fails, or its runner dies by
an error that nobody expected, this worker leaves it alone for a while. A chat that kills or stalls its workers is known
by the takeovers that its log counts: whoever takes it over again waits first, and takes such chats one at a time, so
that those which merely shared a worker with the culprit go on, and die with it no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from chatstate.handlers.worker import TAKEOVER_LIMIT
from events.control import Control
from events.ids import ChatId

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 60.0
"""Seconds that a chat is left alone after its first fault, doubled with each further one, and at most."""

_FORGOTTEN_AFTER: Final = 600.0


@dataclass(slots=True)
class _Fault:
    times: int = 0
    until: float = 0.0
    died: bool = False
    takeovers: int = 0
    """The highest count of takeovers for which the chat was left alone."""
    in_line: bool = False
    """Whether it only waits for another chat's trial to end."""


class ChatFaults:
    """Faults of chats, as one worker met them.

    Args:
        clock: Seconds of a clock that never goes back.
        trial: Seconds that a chat which was lost before is watched before the next such chat is acquired.

    Attributes:
        on_wait: Told for how many seconds a chat is left alone.
    """

    def __init__(self, clock: Callable[[], float], *, trial: float = 0.0) -> None:
        self._clock = clock
        self._trial = trial
        self.on_wait: Callable[[float], None] = lambda _: None
        self._faults: dict[ChatId, _Fault] = {}
        self._tried: ChatId | None = None
        self._tried_until = 0.0

    def note(self, chat: ChatId, *, died: bool = False) -> float:
        """Take note of a fault; returns the seconds for which the chat is left alone.

        Args:
            chat: Which chat.
            died: Whether its runner died of it.
        """
        self._forget_old()
        self._end_trial(chat)
        fault = self._faults.setdefault(chat, _Fault())
        fault.died = fault.died or died
        delay = min(FIRST_DELAY * 2.0 ** min(fault.times, 10), LONGEST_DELAY)
        fault.times += 1
        self._leave_alone(fault, delay)
        return delay

    def died(self, chat: ChatId) -> bool:
        """Whether a runner of the chat died here and its log does not say so yet."""
        fault = self._faults.get(chat)
        return fault is not None and fault.died

    def counted(self, chat: ChatId, takeovers: int) -> None:
        """Note that the log counts the death of the chat's runner: it stands at so many now."""
        fault = self._faults.get(chat)
        if fault is not None:
            fault.died = False
            fault.takeovers = takeovers

    def may_acquire(self, chat: ChatId, control: Control) -> bool:
        """Whether the chat may be acquired now; if not, it is left alone for a while.

        A chat that was lost before on its history, with its worker or its runner, waits here first, and only one such
        chat is on trial at a time. An interruption, and a chat that will not be run any more, need not wait.
        """
        lost = control.takeovers
        if control.interrupting or lost == 0 or lost + (control.holder is not None) >= TAKEOVER_LIMIT:
            return True
        fault = self._faults.setdefault(chat, _Fault())
        if fault.takeovers < lost:
            fault.takeovers = lost
            fault.times = max(fault.times, lost)
            self._leave_alone(fault, min(FIRST_DELAY * 2.0 ** (lost - 1), LONGEST_DELAY))
        elif self._on_trial() and self._tried != chat:
            self._leave_alone(fault, self._tried_until - self._clock())
            fault.in_line = True
        if self._clock() < fault.until:
            return False
        self._tried, self._tried_until = chat, self._clock() + self._trial
        return True

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
        self._end_trial(chat)

    def _on_trial(self) -> bool:
        return self._tried is not None and self._clock() < self._tried_until

    def _end_trial(self, chat: ChatId) -> None:
        """Let the next chat be tried: this one went well, or its fault is known."""
        if self._tried != chat:
            return
        self._tried = None
        waiting = [fault for fault in self._faults.values() if fault.in_line]
        for fault in waiting:
            fault.until, fault.in_line = self._clock(), False
        if waiting:
            self.on_wait(0.0)

    def _leave_alone(self, fault: _Fault, delay: float) -> None:
        fault.until, fault.in_line = self._clock() + delay, False
        self.on_wait(delay)

    def _forget_old(self) -> None:
        now = self._clock()
        for chat, fault in tuple(self._faults.items()):
            if now - fault.until > _FORGOTTEN_AFTER:
                del self._faults[chat]
