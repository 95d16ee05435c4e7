"""The shared ``transitions`` machine over the five statuses, built from the table.

One machine serves all chats: it holds no model. ``destination`` sets the state of a probe (one per thread) and fires
the trigger; the machine's conditions look at the chat's situation, and the status it moves the probe to is the status
after the transition.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple, cast

from transitions import EventData, Machine, MachineError, State

from chatstate.classify import ARCHIVED, STATUS_OF, X
from chatstate.errors import ChatNotFound, InvalidState, TransitionNotAllowed
from chatstate.table import TABLE, USER_TABLE
from events.envelope import Status


class Situation(NamedTuple):
    """What conditions look at: the execution state and the case of the cell."""

    state: X
    case: str = "usual"


_Row = tuple[str, str, str]


def _rows() -> dict[_Row, set[Situation]]:
    """Return (trigger, source status, destination status) -> the situations in which that transition is open."""
    rows: dict[_Row, set[Situation]] = {}
    for state, cells in TABLE.items():
        for trigger, cell in cells.items():
            for case, outcomes in cell._asdict().items():
                for outcome in outcomes:
                    row = (trigger, STATUS_OF.get(state, "invalid"), STATUS_OF[outcome])
                    rows.setdefault(row, set()).add(Situation(state, case))
    return rows


def _permits(open_in: frozenset[Situation]) -> Callable[[Situation], bool]:
    def condition(situation: Situation) -> bool:
        return situation in open_in

    return condition


class _Quiet(State):
    """A status. The library logs at info that it called what is to be called there; nothing is, so it says nothing."""

    def enter(self, event_data: EventData) -> None:
        """Do nothing."""

    def exit(self, event_data: EventData) -> None:
        """Do nothing."""


class _Machine(Machine):
    state_cls = _Quiet


def build_machine() -> Machine:
    """Return a machine whose transitions are the table's. Costs some milliseconds: it is built once."""
    rows = _rows()
    states = sorted({status for _, source, dest in rows for status in (source, dest)})
    machine = _Machine(model=None, states=states, initial=None, auto_transitions=False)
    for (trigger, source, dest), situations in rows.items():
        machine.add_transition(trigger, source, dest, conditions=_permits(frozenset(situations)))
    return machine


MACHINE: Final = build_machine()


class _Probe(threading.local):
    """What the machine moves: a status, one per thread."""

    state: str = "none"


_PROBE: Final = _Probe()

EXISTS: Final = "a chat of this id exists"
_WORDS: Final = {
    **{state: status.replace("_", " ") for state, status in STATUS_OF.items()},
    **dict.fromkeys(ARCHIVED, "archived"),
    **dict.fromkeys((X.I0, X.I1), "being interrupted"),
}
"""An execution state in words, for people."""

_NO_ADVICE: Final = frozenset({"import_messages"})
"""What nobody gives by itself: a fork of a long chat goes on with it."""

LEASE_LIVES: Final = "a live worker holds the chat"


@cache
def destination(trigger: str, state: X, case: str = "usual") -> Status:
    """Return the status after ``trigger``.

    Where the transition is open, the machine is asked once, since its answer hangs on nothing else.

    Args:
        trigger: One of the table's.
        state: The execution state that it meets.
        case: Which case of the cell it meets (``chatstate.decide.case_of``).

    Raises:
        ChatNotFound: The chat does not exist.
        InvalidState: The chat is in a combination that must not be, and the trigger is not reconcile.
        TransitionNotAllowed: The table has no such transition.
    """
    _PROBE.state = STATUS_OF.get(state, "invalid")
    with suppress(MachineError):
        if MACHINE.events[trigger].trigger(_PROBE, Situation(state, case)):
            return cast("Status", _PROBE.state)
    if state is X.N:
        raise ChatNotFound(trigger, state, "there is no such chat")
    if state is X.INVALID:
        raise InvalidState(trigger, state, "the chat is in a combination that must not be; reconcile it first")
    if trigger in ("create", "fork"):
        raise TransitionNotAllowed(trigger, state, EXISTS)
    dead = TABLE[state].get(trigger, None)
    raise TransitionNotAllowed(trigger, state, LEASE_LIVES if dead and dead.dead else _not_here(state))


def _not_here(state: X) -> str:
    """Say what users may do instead; what workers may do is no advice to anybody."""
    possible = ", ".join(name for name, cell in USER_TABLE[state].items() if cell.usual and name not in _NO_ADVICE)
    return f"a chat that is {_WORDS[state]} allows only: {possible}"
