"""What a seed decides before anything happens: how large the world is, which faults there are, and how often.

Each seed draws a world of its own, so that no fault is always there to hide what another one would show.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from events.errors import InvalidValue
from events.given import checked_kind, checked_seconds
from events.values import checked_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Bounds of a simulated world; each seed draws what it takes within them.

    Attributes:
        workers: Processes with a worker, at most.
        chats: Chats that users begin with, at most.
        commands: Commands that users send, at most.
        seconds: Virtual time in which they are sent.
        steps: Steps of the event loop after which a run counts as a livelock.
    """

    workers: int = 3
    chats: int = 3
    commands: int = 16
    seconds: float = 10.0
    steps: int = 400_000

    def __post_init__(self) -> None:
        """Refuse bounds within which there is no world.

        Raises:
            InvalidValue: One is no number, or not over zero.
        """
        for name in ("workers", "chats", "commands", "steps"):
            checked_whole(getattr(self, name), f"$.{name}", least=1)
        if not checked_seconds(self.seconds, "$.seconds") > 0:
            raise InvalidValue("$.seconds", f"must be over zero, not {self.seconds}")


def checked_size(size: object) -> Size:
    """Return the bounds that are given, or the usual ones.

    Raises:
        InvalidValue: They are no bounds.
    """
    return Size() if size is None else checked_kind(size, Size, "$.size", "a Size or None")


LEASE: Final = 3.0
POLL: Final = 1.0
GRACE: Final = 0.5
"""Settings of the simulated engines, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The world of one seed. Probabilities are per call, hint, answer or tool call; faults are numbers of events.

    ``segment`` is the number of events after which a segment is built: short chats have some too. ``late`` kills are of
    processes that have been answering for a while.
    """

    workers: int
    clients: int
    chats: int
    commands: int
    users: int
    seconds: float
    capacity: int
    shuffled: bool
    latency: float
    slow_call: float
    lost_reply: float
    lost_early: float
    unavailable: float
    hints_lost: float
    hints_late: float
    hints_twice: float
    model_fails: float
    model_slow: float
    tool_calls: float
    tool_slow: float
    struck_dead: int
    struck_still: int
    kills: int
    pauses: int
    stops: int
    outages: int
    skews: int
    deaf: int
    followers: int
    segment: int
    late: int


def draw(random: Random, size: Size) -> Profile:
    """Draw a world."""

    def some(share: float, most: float) -> float:
        return random.random() * most if random.random() < share else 0.0

    def times(share: float, most: int) -> int:
        return random.randint(1, most) if random.random() < share else 0

    return Profile(
        workers=random.randint(1, size.workers),
        clients=random.randint(0, 1),
        chats=random.randint(1, size.chats),
        commands=random.randint(max(1, size.commands // 3), size.commands),
        users=random.randint(1, 3),
        seconds=size.seconds * random.choice((0.3, 1.0)),
        capacity=random.choice((1, 2, 100, 100)),
        shuffled=random.random() < 0.5,
        latency=random.choice((0.0005, 0.003, 0.03)),
        slow_call=some(0.4, 0.05),
        lost_reply=some(0.5, 0.08),
        lost_early=some(0.3, 0.05),
        unavailable=some(0.4, 0.08),
        hints_lost=random.choice((0.0, 0.0, 0.3, 1.0)),
        hints_late=some(0.5, 1.0),
        hints_twice=some(0.3, 0.3),
        model_fails=some(0.5, 0.4),
        model_slow=some(0.7, 0.8),
        tool_calls=random.choice((0.0, 0.3, 0.6, 0.9)),
        tool_slow=some(0.6, 0.8),
        struck_dead=times(0.4, 3),
        struck_still=times(0.4, 3),
        kills=times(0.5, 3),
        pauses=times(0.5, 3),
        stops=times(0.4, 2),
        outages=times(0.2, 2),
        skews=times(0.3, 3),
        deaf=times(0.2, 2),
        followers=random.choice((0, 0, 1, 2)),
        segment=random.choice((5, 256)),
        late=times(0.3, 2),
    )
