"""Calls of tools that ran when their worker died or let the chat go, or when their turn ended; and model calls.

One event is one sign: where it leaves some calls unknown, those that are run once more are told with them; and where
the failure of a turn is such an event, it is told here, or says itself what is run once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Final, TypeAlias

from chatfold.replaying.signs.sign import SECOND, Sign, last_end, named
from chatfold.replaying.turns import Turn
from chatfold.replaying.words import error_name
from events import vocabulary as v
from events.effects import Effects
from events.ids import CallKey
from events.reasons import Reason
from events.records import MODEL_KINDS, AttemptKind
from events.replay import ReplayStep

_Lost: TypeAlias = v.Acquired | v.Released | v.TurnFailed


def lost_results(turn: Turn) -> Iterator[Sign]:
    """Calls of which nobody knows whether they took effect."""
    for step in turn.steps:
        unknown = unknown_calls(step.recorded.event)
        if unknown:
            names, one = named(step.before.control.indexes.open_calls, unknown), len(unknown) == 1
            it = "it" if one else "they"
            again = said_again(step)
            yield Sign(
                step.recorded.version,
                f"The {'result' if one else 'results'} of {names} {'was' if one else 'were'} lost: "
                f"{_meanwhile(step.recorded.event)}, and whether {it} took effect is not known."
                + (f" {again}." if again else ""),
                f"Before {it} {'is' if one else 'are'} run again, look whether {it} took effect; {_DECLARE}",
            )


_DECLARE: Final = (
    "`chatfold show` has the arguments. For the next time: where the tool may be run again, declare it with "
    'crash="rerun"; where it can be asked whether it took effect, with reconcile (docs/tools.md). Look for what made '
    "the worker end at that time, or for how long the tool runs after it was told to end."
)


def unknown_calls(event: v.Event) -> tuple[CallKey, ...]:
    """Return the calls of which an event says that nobody knows what became of them."""
    if isinstance(event, _Lost):
        return event.unknown
    answers = event.answers if isinstance(event, Effects) else ()
    return tuple(each.call for each in answers if each.reason is Reason.INTERRUPTED_UNKNOWN)


def _meanwhile(event: v.Event) -> str:
    if isinstance(event, v.TurnFailed):
        return f"the turn failed meanwhile ({error_name(event.error)})"
    return _LOST.get(type(event), "the turn was ended while it ran")


_LOST: Final[Mapping[type, str]] = MappingProxyType(
    {
        v.Acquired: "the worker that ran the chat died meanwhile",
        v.Released: "the worker let the chat go meanwhile",
    }
)


def run_again(turn: Turn) -> Iterator[Sign]:
    """Calls that ran when their worker died or let the chat go, and that are run once more."""
    for step in turn.steps:
        event = step.recorded.event
        again = said_again(step)
        if again and not unknown_calls(event) and not told_as_failed(turn, step):
            yield Sign(
                step.recorded.version,
                f"{again}: {_meanwhile(event)}.",
                'Nothing, where what is declared with crash="rerun" does no harm twice. Look for what made the worker '
                "end at that time.",
            )


def taken_over(turn: Turn) -> Iterator[Sign]:
    """Model calls that ran when their worker died; no tool did anything that is not known."""
    for at, step in enumerate(turn.steps):
        event, running = step.recorded.event, step.before.control.running
        if not isinstance(event, v.Acquired) or not event.takeover or event.unknown or event.again:
            continue
        if running is not None and running.kind in MODEL_KINDS:
            same_turn = takewhile(lambda later: not isinstance(later.recorded.event, v.ENDS_TURN), turn.steps[at + 1 :])
            again = next((later for later in same_turn if _starts(later, running.kind)), None)
            yield Sign(
                step.recorded.version,
                f"The worker that ran the chat died during a model call, and another one took the chat over: "
                f"{_called_again(again, running.started_at)}.",
                "Nothing: no call of a tool was lost. Look for what made the worker end at that time; the setting "
                "lease says how soon another one takes over.",
            )


def _starts(step: ReplayStep, kind: AttemptKind) -> bool:
    event = step.recorded.event
    return isinstance(event, v.AttemptStarted) and event.kind == kind


def _called_again(again: ReplayStep | None, started_at: int) -> str:
    if again is None:
        return "the model was not called again"
    lost = (again.recorded.envelope.recorded_at - started_at) / SECOND
    return f"the model was called again at version {again.recorded.version}, and {lost:,.1f} s were lost"


def told_as_failed(turn: Turn, step: ReplayStep) -> bool:
    """Whether the failure of a turn is told as such, with the calls that are run once more."""
    event = step.recorded.event
    return isinstance(event, v.TurnFailed) and step is last_end(turn) and not unknown_calls(event)


def said_again(step: ReplayStep) -> str:
    """Say which calls an event lets run once more; nothing where there are none."""
    event = step.recorded.event
    if not isinstance(event, _Lost) or not event.again:
        return ""
    names, one = named(step.before.control.indexes.open_calls, event.again), len(event.again) == 1
    runs = "runs" if one else "run"
    resumed = " if the turn is resumed" if isinstance(event, v.TurnFailed) else ""
    return f"{names} {runs} once more{resumed}, since {'it is' if one else 'they are'} declared safe to repeat"
