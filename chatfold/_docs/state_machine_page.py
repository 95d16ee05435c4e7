"""Makes ``docs/state-machine.md`` from the machine: its tables in the layout of the specification, and a diagram.

What is legal is said by ``chatstate``; this module only lays it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from chatstate import errors
from chatstate.cancellations import REASONS
from chatstate.classify import EXISTING, STATUS_OF, X
from chatstate.diagram import machine_edges, mermaid, table
from chatstate.invariants import INVARIANTS
from chatstate.table import ANY_TRIGGERS, FENCES, TABLE, WORKER_TABLE, Cell
from events.reasons import REASON_TEXTS

USER_COLUMNS: Final = (
    "send",
    "send_interrupt",
    "edit",
    "delete_queued",
    "promote_queued",
    "interrupt",
    "submit_results",
    "resume",
    "compact",
    "clear",
    "archive",
    "unarchive",
)
"""Triggers of users, in the order of the specification's columns."""

_HEADS: Final = {
    "send": "send (queue)",
    "send_interrupt": "send (interrupt)",
    "submit_results": "submit results",
}
_ARCHIVED: Final = (X.XW, X.XE0, X.XE1)
_MEANINGS: Final = {
    X.N: "the chat does not exist",
    X.P0: "a turn is owed and no worker has it",
    X.R0: "a worker has it",
    X.I0: "the worker must stop, keep what was produced, end the turn",
    X.A0: "the client owes results or answers, until a deadline",
    X.W: "no turn is scheduled",
    X.E0: "the last turn failed",
    X.XW: "put away",
    X.INVALID: "anything else; only reconcile leads out of it",
}


def render() -> str:
    """Return the page."""
    lines = [
        "# State machine",
        "",
        "Every chat is in one execution state; a trigger leads from one to another, and its event is appended to the",
        "log. The [specification](specification/state-machine.md) has the rules that tables cannot say.",
        "",
        "## Execution states",
        "",
        table(["name", "status", "queue", "flags", "meaning"], _states()),
        "## Transitions of users and clients",
        "",
        "`x`: refused, nothing changed. Several outcomes: the queue decides. *In italics*: the outcome where the",
        "holder's lease is dead.",
        "",
        table(["from", *(_HEADS.get(t, t.replace("_", " ")) for t in USER_COLUMNS)], user_rows()),
        "`create` leads from no chat to P0, or to W where there is nothing to answer; `fork` to W, where",
        "`import_messages` fills it. `edit_queued` and `reorder_queue` are legal where `delete_queued` is, `uncompact`",
        f"in W: they leave the state as it is. So do, wherever a chat exists, {_names(ANY_TRIGGERS)};",
        f"in an archived chat only {_names(_in_archive())}.",
        "",
        "## Transitions of workers",
        "",
        table(["trigger", "from -> to", "fence"], worker_rows()),
        "## Why a call has no result of its own",
        "",
        "Whatever ends a turn, or lets a user's message into history, answers the calls that are open. A call whose",
        "result is recorded is answered by it; one that may be running, or is possibly done, by `interrupted_unknown`;",
        "a local one that an interrupted worker had not started by `not_started`; one that was lost with its worker,",
        "and whose tool cannot be asked or does not know, by `worker_lost`. All others:",
        "",
        table(["trigger", "status", "reason"], [[f"`{t}`", s, f"`{r}`"] for (t, s), r in REASONS.items()]),
        table(["reason", "what models and people read"], [[f"`{r}`", text] for r, text in REASON_TEXTS.items()]),
        "## Refusals",
        "",
        "A refusal carries its code, the trigger, the state and a reason. State is checked before ids.",
        "",
        table(["code", "when"], _refusals()),
        "## Invariants",
        "",
        *(f"- {invariant}" for invariant in INVARIANTS),
        "",
        "## Diagram",
        "",
        "Over the five statuses; triggers that never change anything are left out.",
        "",
        "```mermaid",
        mermaid(machine_edges()).rstrip(),
        "```",
    ]
    return "\n".join(lines) + "\n"


def user_rows() -> Iterator[list[str]]:
    """Yield the rows of the users' table, laid out as the specification has them."""
    for x in EXISTING:
        if x not in _ARCHIVED:
            yield [str(x), *(_cell(TABLE[x].get(trigger)) for trigger in USER_COLUMNS)]
    cells = [[_cell(TABLE[x].get(trigger)) for x in _ARCHIVED] for trigger in USER_COLUMNS]
    yield [" / ".join(_ARCHIVED), *(row[0] if set(row) == {"x"} else " / ".join(row) for row in cells)]


def worker_rows() -> Iterator[list[str]]:
    """Yield a row for each trigger of workers: where it leads, and what it must name."""
    triggers = dict.fromkeys(trigger for cells in WORKER_TABLE.values() for trigger in cells)
    for trigger in triggers:
        ways = [(x, cells[trigger]) for x, cells in WORKER_TABLE.items() if trigger in cells]
        leads = ", ".join(f"{x} -> {_cell(cell)}" for x, cell in ways)
        yield [f"`{trigger}`", leads, ", ".join(FENCES.get(trigger, ("in database time",)))]


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "x"
    usual = " ".join(cell.usual) or ("x" if cell.dead else "")
    return " ".join(filter(None, [usual, f"*{' '.join(cell.dead)}*" if cell.dead else ""]))


def _states() -> Iterator[list[str]]:
    for x in X:
        queue = "filled" if x.endswith("1") else "empty" if x.endswith("0") or x in (X.W, X.XW) else ""
        flags = "interrupting" if x in (X.I0, X.I1) else "archived" if x in _ARCHIVED else ""
        meaning = _MEANINGS.get(x, "the same" if x not in _ARCHIVED else "put away")
        yield [str(x), STATUS_OF.get(x, ""), queue, flags, meaning]


def _in_archive() -> list[str]:
    return [trigger for trigger in ANY_TRIGGERS if trigger in TABLE[X.XW]]


def _names(triggers: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{trigger}`" for trigger in triggers)


def _refusals() -> Iterator[list[str]]:
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, errors.Refusal) and value is not errors.Refusal:
            summary = (value.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
            yield [f"`{value.code}`", summary.strip()]
