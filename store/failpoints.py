"""Failpoints: named places in the code at which a test may kill, stop, delay or fail the process that reaches them.

Owns the list of names, what may happen there, and the text that arms them. They stand before and after everything that
becomes durable, and around effects. Unarmed, a point costs a call and one look at a variable.

A process that is started with ``CHATFOLD_FAILPOINTS`` (such as ``append.committed=kill@3;tool.done=stop``) is armed
from its start; ``arm`` arms it later.
"""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from store.errors import StoreError
from store.log import get_logger

Point: TypeAlias = Literal[
    "acquire.asked",
    "acquire.done",
    "append.answered",
    "append.committed",
    "append.handed",
    "append.written",
    "command.done",
    "delete.committed",
    "effect.starting",
    "expiry.asked",
    "heartbeat.answered",
    "heartbeat.asked",
    "hook.answered",
    "import.committed",
    "lease.new",
    "migration.begun",
    "migration.written",
    "outcome.asked",
    "outcome.recorded",
    "partials.asked",
    "partials.written",
    "provider.calling",
    "provider.part",
    "release.done",
    "result.asked",
    "result.recorded",
    "segment.asked",
    "segment.written",
    "stop.begun",
    "stop.lease",
    "tool.done",
    "tool.starting",
]

POINTS: Final[Mapping[Point, str]] = {
    "acquire.asked": "A worker is about to acquire a chat.",
    "acquire.done": "A chat was acquired and its first effect is recorded as started; nothing of it was done.",
    "append.answered": "The store has answered an append; who asked for it does not know yet.",
    "append.committed": "An append is durable; its hint is not out, and nobody in this process knows.",
    "append.handed": "An append is complete and about to be handed to the store.",
    "append.written": "An append is written within its transaction and not committed (SQLite).",
    "command.done": "A user's command is durable; its caller has no receipt yet.",
    "delete.committed": "A chat was deleted; its caller does not know yet.",
    "effect.starting": "An effect is recorded as started, the lease was looked at, the work is about to begin.",
    "expiry.asked": "A worker is about to let an action expire.",
    "heartbeat.answered": "The store has answered a heartbeat; the worker does not know yet.",
    "heartbeat.asked": "A worker is about to ask for its lease.",
    "hook.answered": "Hooks have answered; nothing of what they said is appended.",
    "import.committed": "A log was imported; its caller does not know yet.",
    "lease.new": "A worker has taken a lease under a new id and runs nothing under it.",
    "migration.begun": "A migration's transaction is open and nothing is changed.",
    "migration.written": "A migration has changed all it changes, and is not committed.",
    "outcome.asked": "An effect has ended; its outcome is about to be appended with what follows it.",
    "outcome.recorded": "An outcome is durable with what follows it; the next effect has not begun.",
    "partials.asked": "Pieces of uncommitted answers are about to be written.",
    "partials.written": "Pieces of uncommitted answers are durable.",
    "provider.calling": "A model is about to be called.",
    "provider.part": "A part of a model's answer has come and nobody was shown it.",
    "release.done": "A chat was let go, at a turn's end or before; its runner has not ended.",
    "result.asked": "A tool's result has come while others of its batch run, and is about to be appended.",
    "result.recorded": "A tool's result is durable while others of its batch run.",
    "segment.asked": "A segment of a transcript is about to be written.",
    "segment.written": "A segment of a transcript is durable.",
    "stop.begun": "A worker was told to stop; its chats are not let go.",
    "stop.lease": "A worker that stops runs nothing any more and is about to give its lease back.",
    "tool.done": "A tool has returned; nobody has looked at its result.",
    "tool.starting": "A tool's function is about to be called.",
}
"""Each point, and what has happened there and what has not."""

Action: TypeAlias = Literal["kill", "stop", "raise", "delay"]

VARIABLE: Final = "CHATFOLD_FAILPOINTS"

_ORDER: Final = re.compile(
    r"(?P<point>[a-z.]+)=(?P<action>kill|stop|raise|delay\((?P<seconds>\d+(\.\d+)?)\))(@(?P<when>[1-9]\d*|\*))?"
)

_log = get_logger(__name__)


class InvalidFailpoints(StoreError, ValueError):
    """A text that should arm failpoints names none, or cannot be read."""


class FailpointReached(Exception):
    """Raised at a point that was armed with ``raise``."""

    def __init__(self, point: Point) -> None:
        super().__init__(f"failpoint {point}")
        self.point = point


class Order(Struct, frozen=True, kw_only=True):
    """What happens at a point.

    Attributes:
        point: Where.
        action: ``kill`` and ``stop`` send SIGKILL and SIGSTOP to this process, ``raise`` raises ``FailpointReached``,
            ``delay`` blocks the thread.
        seconds: How long ``delay`` does.
        when: At which time that the point is reached, from 1; None: each time.
    """

    point: Point
    action: Action
    seconds: float = 0.0
    when: int | None = 1


class Armed:
    """Orders in force, and how often each point was reached since. Safe to use from several threads."""

    def __init__(self, orders: tuple[Order, ...] = ()) -> None:
        self.orders = orders
        self.reached: Counter[Point] = Counter()
        self._lock = threading.Lock()

    def reach(self, point: Point) -> None:
        """Count, and do what was ordered."""
        with self._lock:
            self.reached[point] += 1
            count = self.reached[point]
        for order in self.orders:
            if order.point == point and order.when in {None, count}:
                _carry_out(order)


_armed: Armed | None = None


def reach(point: Point) -> None:
    """Say that the code has come to a point; nothing happens unless failpoints are armed."""
    if _armed is not None:
        _armed.reach(point)


def arm(text: str = "") -> Armed:
    """Arm this process in place of what was armed before.

    Args:
        text: ``POINT=ACTION[@N]``, several separated by ``;``. The action is ``kill``, ``stop``, ``raise`` or
            ``delay(SECONDS)``; it happens the first time that the point is reached, with ``@N`` the Nth time alone,
            with ``@*`` each time. Nothing at all: points are only counted.

    Raises:
        InvalidFailpoints: It is no such text; says which points there are.
    """
    global _armed  # noqa: PLW0603 - points are looked at everywhere, and must cost nothing
    armed = Armed(read_orders(text))
    if armed.orders:
        _log.warning("failpoints_armed", orders=text)
    _armed = armed
    return armed


def disarm() -> None:
    """Let nothing happen at any point any more."""
    global _armed  # noqa: PLW0603 - see ``arm``
    _armed = None


@contextmanager
def armed(text: str = "") -> Iterator[Armed]:
    """Arm this process for a block.

    Raises:
        InvalidFailpoints: See ``arm``.
    """
    try:
        yield arm(text)
    finally:
        disarm()


def read_orders(text: str) -> tuple[Order, ...]:
    """Read what ``arm`` takes.

    Raises:
        InvalidFailpoints: It cannot be read, or names a point that does not exist.
    """
    return tuple(_order(each.strip()) for each in text.split(";") if each.strip())


def _order(text: str) -> Order:
    found = _ORDER.fullmatch(text)
    if found is None:
        raise InvalidFailpoints(
            f"{text!r} is not POINT=ACTION[@N] with an ACTION of kill, stop, raise or delay(SECONDS)"
        )
    points: dict[str, Point] = {point: point for point in POINTS}
    actions: dict[str, Action] = {action: action for action in get_args(Action)}
    point = points.get(found["point"])
    if point is None:
        raise InvalidFailpoints(f"there is no failpoint {found['point']!r}; there are {', '.join(POINTS)}")
    return Order(
        point=point,
        action=actions[found["action"].partition("(")[0]],
        seconds=float(found["seconds"] or 0),
        when=None if found["when"] == "*" else int(found["when"] or 1),
    )


def _carry_out(order: Order) -> None:
    match order.action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "raise":
            raise FailpointReached(order.point)
        case "delay":
            time.sleep(order.seconds)


if VARIABLE in os.environ:
    arm(os.environ[VARIABLE])
