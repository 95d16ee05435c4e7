"""The one transition table: execution state -> trigger -> where it may lead.

Theory. The five statuses are the states of the machine; queue, interrupting, archived and holder are its conditions.
Written out over the execution states (``chatstate.classify``), every condition becomes a row, and the table can be
compared cell by cell with its specification. Three things may live here: states, triggers, outcomes. The table must
not know messages, calls, clocks or stores.

A cell has up to three cases. ``usual`` is the common one. ``dead`` is the outcome where the holder's lease is dead, in
database time: no live worker can finish an interruption, so it is finished inline. ``unanswered`` is a created chat
with nothing to answer. In each case the status after it is certain; of two outcomes the queue decides. What the table
cannot say stands in the handlers: whether an id exists, whether a turn is owed, whether a deadline has passed, and
whether a worker's fence still holds.

A trigger that is missing from a row is forbidden there. Terminal states do not exist: an archived chat can be
unarchived.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple

from chatstate.classify import ARCHIVED, EXISTING, X


class Cell(NamedTuple):
    """Outcomes of one trigger from one state, by case."""

    usual: tuple[X, ...] = ()
    dead: tuple[X, ...] = ()
    unanswered: tuple[X, ...] = ()

    @property
    def outcomes(self) -> tuple[X, ...]:
        """All outcomes, whatever the case."""
        return (*self.usual, *self.dead, *self.unanswered)


def to(*usual: X, dead: tuple[X, ...] = (), unanswered: tuple[X, ...] = ()) -> Cell:
    """Write a cell."""
    return Cell(usual, dead, unanswered)


_P0, _P1, _R0, _R1, _I0, _I1 = X.P0, X.P1, X.R0, X.R1, X.I0, X.I1
_A0, _A1, _W, _E0, _E1 = X.A0, X.A1, X.W, X.E0, X.E1

USER_TABLE: Final[dict[X, dict[str, Cell]]] = {
    X.N: {
        "create": to(_P0, unanswered=(_W,)),
        "fork": to(_W),
    },
    X.P0: {
        "send": to(_P1),
        "send_interrupt": to(_P0),
        "edit": to(_P0),
        "interrupt": to(_W),
    },
    X.P1: {
        "send": to(_P1),
        "send_interrupt": to(_P1),
        "edit": to(_P0),
        "delete_queued": to(_P0, _P1),
        "edit_queued": to(_P1),
        "reorder_queue": to(_P1),
        "promote_queued": to(_P0, _P1),
        "interrupt": to(_P0, _P1),
    },
    X.R0: {
        "send": to(_R1),
        "send_interrupt": to(_I1, dead=(_P0,)),
        "edit": to(_R0),
        "interrupt": to(_I0, dead=(_W,)),
    },
    X.R1: {
        "send": to(_R1),
        "send_interrupt": to(_I1, dead=(_P1,)),
        "edit": to(_R0),
        "delete_queued": to(_R0, _R1),
        "edit_queued": to(_R1),
        "reorder_queue": to(_R1),
        "promote_queued": to(_I1, dead=(_P0, _P1)),
        "interrupt": to(_I1, dead=(_P0, _P1)),
    },
    X.I0: {
        "send": to(_I1),
        "send_interrupt": to(_I1, dead=(_P0,)),
        "edit": to(_R0),
        "interrupt": to(dead=(_W,)),
    },
    X.I1: {
        "send": to(_I1),
        "send_interrupt": to(_I1, dead=(_P1,)),
        "edit": to(_R0),
        "delete_queued": to(_I0, _I1),
        "edit_queued": to(_I1),
        "reorder_queue": to(_I1),
        "promote_queued": to(_I1, dead=(_P0, _P1)),
        "interrupt": to(dead=(_P0, _P1)),
    },
    X.A0: {
        "send": to(_A1),
        "send_interrupt": to(_P0),
        "edit": to(_P0),
        "interrupt": to(_W),
        "submit_results": to(_P0),
    },
    X.A1: {
        "send": to(_A1),
        "send_interrupt": to(_P1),
        "edit": to(_P0),
        "delete_queued": to(_A0, _A1),
        "edit_queued": to(_A1),
        "reorder_queue": to(_A1),
        "promote_queued": to(_P0, _P1),
        "interrupt": to(_P0, _P1),
        "submit_results": to(_P1),
    },
    X.W: {
        "send": to(_P0),
        "send_interrupt": to(_P0),
        "edit": to(_P0),
        "resume": to(_P0),
        "compact": to(_P0),
        "clear": to(_W),
        "archive": to(X.XW),
        "import_messages": to(_W),
        "uncompact": to(_W),
    },
    X.E0: {
        "send": to(_P0),
        "send_interrupt": to(_P0),
        "edit": to(_P0),
        "resume": to(_P0),
        "compact": to(_P0),
        "clear": to(_W),
        "archive": to(X.XE0),
    },
    X.E1: {
        "send": to(_P1),
        "send_interrupt": to(_P1),
        "edit": to(_P0),
        "delete_queued": to(_E0, _E1),
        "edit_queued": to(_E1),
        "reorder_queue": to(_E1),
        "promote_queued": to(_P0, _P1),
        "resume": to(_P1),
        "compact": to(_P1),
        "archive": to(X.XE1),
    },
    X.XW: {"unarchive": to(_W)},
    X.XE0: {"unarchive": to(_E0)},
    X.XE1: {"unarchive": to(_E1)},
    X.INVALID: {},
}
"""What users and clients may do."""

_ATTEMPT_TRIGGERS: Final = ("record_policy", "start_attempt", "commit_step", "commit_compaction", "persist_context")

WORKER_TABLE: Final[dict[X, dict[str, Cell]]] = {
    X.P0: {"acquire": to(_R0)},
    X.P1: {"acquire": to(_R1)},
    X.R0: {
        "acquire": to(dead=(_R0,)),
        "release": to(_P0),
        **dict.fromkeys((*_ATTEMPT_TRIGGERS, "record_tool_result"), to(_R0)),
        "schedule_retry": to(_P0),
        "require_action": to(_A0),
        "finish_turn": to(_W),
        "fail_turn": to(_E0),
    },
    X.R1: {
        "acquire": to(dead=(_R1,)),
        "release": to(_P1),
        **dict.fromkeys((*_ATTEMPT_TRIGGERS, "record_tool_result"), to(_R1)),
        "schedule_retry": to(_P1),
        "require_action": to(_A1),
        "finish_turn": to(_R0, _R1),
        "fail_turn": to(_E1),
    },
    X.I0: {
        "acquire": to(dead=(_I0,)),
        "record_tool_result": to(_I0),
        "finish_interruption": to(_W),
    },
    X.I1: {
        "acquire": to(dead=(_I1,)),
        "record_tool_result": to(_I1),
        "finish_interruption": to(_R0, _R1),
    },
    X.A0: {"expire_action": to(_P0), "expire_action_end_turn": to(_W)},
    X.A1: {"expire_action": to(_P1), "expire_action_end_turn": to(_P0, _P1)},
    X.INVALID: {"reconcile": to(_E0, _E1)},
}
"""What workers may do."""

_HISTORY: Final = ("epoch", "history_version")
_ATTEMPT: Final = (*_HISTORY, "attempt")
_IF_ANY: Final = (*_HISTORY, "attempt if any")

FENCES: Final = MappingProxyType(
    {
        "release": ("epoch",),
        "record_policy": ("epoch",),
        "start_attempt": _HISTORY,
        "record_tool_result": _ATTEMPT,
        "commit_step": _ATTEMPT,
        "commit_compaction": _ATTEMPT,
        "persist_context": _ATTEMPT,
        "schedule_retry": _ATTEMPT,
        "require_action": _HISTORY,
        "finish_turn": _IF_ANY,
        "fail_turn": _IF_ANY,
        "finish_interruption": _IF_ANY,
    }
)
"""What a worker's command must name, and name rightly, of the chat that it believes to hold."""

ANY_TRIGGERS: Final = (
    "set_title",
    "set_labels",
    "set_model",
    "set_agent",
    "set_active_tools",
    "set_pinned",
    "set_retention",
    "mark_context",
    "set_turn_label",
    "record_side_call",
    "erase",
    "adopt",
)
"""Triggers that leave the state as it is."""

_ARCHIVED_MAY: Final = ("set_title", "set_labels", "erase", "adopt")

_ANY_TABLE: Final[dict[X, dict[str, Cell]]] = {
    state: {trigger: to(state) for trigger in ANY_TRIGGERS if state not in ARCHIVED or trigger in _ARCHIVED_MAY}
    for state in EXISTING
}

TABLE: Final = MappingProxyType(
    {
        state: MappingProxyType(
            {**USER_TABLE.get(state, {}), **WORKER_TABLE.get(state, {}), **_ANY_TABLE.get(state, {})}
        )
        for state in X
    }
)
"""All of it."""

TRIGGERS: Final = tuple(dict.fromkeys(trigger for row in TABLE.values() for trigger in row))
"""All triggers, in the order of their first row."""
