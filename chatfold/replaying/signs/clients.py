"""Clients that are asked, and do not answer."""

from __future__ import annotations

from collections.abc import Iterator

from chatfold.replaying.signs.sign import Sign, named
from chatfold.replaying.turns import Turn
from chatfold.replaying.users import asked_for, seconds_allowed
from events import vocabulary as v
from events.replay import ReplayStep


def silent_client(turn: Turn) -> Iterator[Sign]:
    """Actions that expired: the client did not answer."""
    for step in turn.steps:
        event = step.recorded.event
        if isinstance(event, v.ActionExpired | v.ActionExpiredTurnEnded):
            went_on = isinstance(event, v.ActionExpired)
            yield Sign(
                step.recorded.version,
                f"The client never answered: {_asked(step)}, and nothing came within "
                f"{_allowed(turn, event.action):,.0f} s. The turn {'went on without it' if went_on else 'was ended'}.",
                "See whether the client was there and showed the question (its stream, its log at that time). How long "
                "it may take is the tool's action_timeout or the agent's, what happens then its on_expiry.",
                event.action,
            )


def open_question(turn: Turn) -> Iterator[Sign]:
    """An action that is open where the log ends."""
    last = turn.steps[-1]
    action = last.after.control.action
    if action is not None:
        yield Sign(
            action.id,
            f"The chat waits for its client: {_asked(last, open_now=True)}.",
            "Let the client answer, or interrupt the turn.",
        )


def _asked(step: ReplayStep, *, open_now: bool = False) -> str:
    """Say what the client was asked in the action that an event ends, or leaves open."""
    control = step.after.control if open_now else step.before.control
    action = control.action
    if action is None:  # pragma: no cover -- an action that ends was open
        return "it was asked something"
    calls = control.indexes.open_calls
    wanted = asked_for(action.items, lambda call: named(calls, (call,)))
    return f"at version {action.id} it was asked for {wanted}"


def _allowed(turn: Turn, action: int) -> float:
    """Return the seconds that an answer might take."""
    for step, event in turn.of(v.ActionRequired):
        if step.recorded.version == action:
            return seconds_allowed(event, step.recorded.envelope)
    return 0.0
