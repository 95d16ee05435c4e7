"""The turns that a process sees: when each began, what works on it, and how it ended. Pure bookkeeping, no clock.

A turn begins with the event that made it owed, whoever works on it later. It has ended with the event that says so; its
end is told once all effects that joined it have ended too: one that was overtaken holds on to the turn that it began
in. A compaction that was asked for is kept like a turn, and marked as none. Turns go from process to process: one whose
end another process writes is forgotten here in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from events.envelope import Recorded
from events.ids import ChatId, MessageId
from events.vocabulary import CompactionRequested, RetryScheduled
from generation.observing import Effect
from store.append import Outcome

TurnOutcome: TypeAlias = Literal["completed", "error", "interrupted", "abandoned"]
"""How a turn ends: by its own end, a failure, its user, or because nobody waits for it or works on it any more."""

MOST: Final = 10_000
"""Turns on which nothing works that are remembered; of those beyond, the oldest are."""

_OPEN: Final = frozenset({"pending", "running", "requires_action"})
_UNDER_WAY: Final = frozenset({"running"})


class _End(NamedTuple):
    """How an event ends a turn; ``at_once``: only where the chat is not left running, for its holder to end it."""

    outcome: TurnOutcome
    at_once: bool = False


_ENDS: Final = MappingProxyType(
    {
        "turn_finished": _End("completed"),
        "turn_failed": _End("error"),
        "reconciled": _End("error"),
        "interruption_finished": _End("interrupted"),
        "turn_interrupted": _End("interrupted", at_once=True),
        "message_sent_interrupting": _End("interrupted", at_once=True),
        "queued_message_promoted": _End("interrupted", at_once=True),
        "message_edited": _End("abandoned"),
        "action_expired_turn_ended": _End("abandoned"),
    }
)


def outcome_of(recorded: Recorded) -> TurnOutcome | None:
    """Return how an event ends a turn; None where it ends none."""
    envelope = recorded.envelope
    end = _ENDS.get(envelope.type)
    if end is None or envelope.source not in _OPEN or (end.at_once and envelope.dest in _UNDER_WAY):
        return None
    return end.outcome


@dataclass(slots=True, eq=False)
class Turn:
    """A turn as this process knows it. Times are microseconds UTC.

    Attributes:
        chat: Of which chat.
        began_at: When it became owed.
        waiting_since: Since when it waits for a worker, or will.
        id: The message that opened it, once an effect has joined it.
        last: The effect that joined it last.
        working: Effects that have joined it and not ended.
        manual: Whether it is no turn but a compaction that was asked for.
        outcome, ended_at: How and when it ended; None while it has not.
    """

    chat: ChatId
    began_at: int
    waiting_since: int
    id: MessageId | None = None
    last: Effect | None = None
    working: int = 0
    manual: bool = False
    outcome: TurnOutcome | None = None
    ended_at: int | None = None


class Turns:
    """Keeps the turns of one process.

    Args:
        ended: Told of each turn that has ended and on which nothing works any more.
        most: Idle turns that are remembered.
    """

    def __init__(self, ended: Callable[[Turn], None], *, most: int = MOST) -> None:
        self._ended = ended
        self._most = most
        self._turns: dict[ChatId, Turn] = {}
        self._joined: dict[tuple[ChatId, int, int], Turn] = {}

    def __len__(self) -> int:
        """How many turns are open."""
        return len(self._turns)

    def of(self, effect: Effect) -> Turn | None:
        """Return the turn that an effect has joined."""
        return self._joined.get(effect.key)

    def appended(self, outcome: Outcome) -> None:
        """Take note of events in their order."""
        for recorded in outcome.recorded:
            self._take(outcome.chat.header.chat, recorded, outcome.chat.header.listed_at)

    def _take(self, chat: ChatId, recorded: Recorded, listed_at: int) -> None:
        envelope, at = recorded.envelope, recorded.envelope.recorded_at
        end = outcome_of(recorded)
        if end is not None:
            ended = self._turns.pop(chat, None) or Turn(chat, min(listed_at, at), at)
            self._close(ended, end, at)
        if envelope.dest not in _OPEN:
            return
        turn = self._turns.get(chat)
        if turn is None:
            new = end is not None or envelope.source not in _OPEN
            began_at = at if new else min(listed_at, at)
            turn = self._turns[chat] = Turn(chat, began_at, began_at)
            self._forget()
        if isinstance(recorded.event, CompactionRequested):
            turn.manual = True
        if isinstance(recorded.event, RetryScheduled):
            turn.waiting_since = recorded.event.not_before
        elif envelope.dest == "pending" != envelope.source:
            turn.waiting_since = at

    def waited(self, chat: ChatId, at: int) -> int | None:
        """Return how long a turn that a worker takes now has waited for that; None where it is not known."""
        turn = self._turns.get(chat)
        return max(0, at - turn.waiting_since) if turn is not None else None

    def held(self, chat: ChatId, began_at: int) -> None:
        """Take note that a worker of this process has the chat, whose turn may have begun elsewhere."""
        if chat not in self._turns:
            self._turns[chat] = Turn(chat, began_at, began_at)

    def join(self, effect: Effect) -> Turn:
        """Have an effect join the turn that it works on."""
        turn = self._turns.get(effect.chat)
        if turn is not None and turn.last is not None and turn.id != effect.turn:
            self._close(self._turns.pop(effect.chat), "abandoned", effect.began_at)  # its end was written elsewhere
            turn = None
        if turn is None:
            turn = self._turns[effect.chat] = Turn(effect.chat, effect.began_at, effect.began_at)
        turn.id, turn.last = effect.turn, effect
        turn.manual = turn.manual or effect.manual
        turn.working += 1
        self._joined[effect.key] = turn
        return turn

    def leave(self, effect: Effect) -> None:
        """Have an effect that has ended leave its turn."""
        turn = self._joined.pop(effect.key, None)
        if turn is not None:
            turn.working -= 1
            self._tell(turn)

    def lose(self, chat: ChatId, at: int) -> None:
        """Take note that the process has lost the chat: whoever takes it goes on with its turn."""
        turn = self._turns.pop(chat, None)
        if turn is not None:
            self._close(turn, "abandoned", at)

    def end_all(self) -> None:
        """Take note that the process ends: what is open goes on elsewhere."""
        for chat in tuple(self._turns):
            turn = self._turns[chat]
            self.lose(chat, turn.last.began_at if turn.last is not None else turn.began_at)

    def _close(self, turn: Turn, outcome: TurnOutcome, at: int) -> None:
        turn.outcome, turn.ended_at = outcome, max(at, turn.began_at)
        self._tell(turn)

    def _tell(self, turn: Turn) -> None:
        if turn.outcome is not None and turn.working == 0:
            self._ended(turn)

    def _forget(self) -> None:
        """Forget the oldest turns on which nothing works, where they are too many."""
        if len(self._turns) <= self._most:
            return
        idle = next((turn for turn in self._turns.values() if turn.working == 0), None)
        if idle is not None:
            del self._turns[idle.chat]
            if idle.last is not None:
                self._close(idle, "abandoned", idle.last.began_at)
