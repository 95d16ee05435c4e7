"""Reads the tables of the specification's copy in ``docs/specification``: cells in, states and triggers out.

It knows how the specification is written and nothing of what the machine does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

SPECIFICATION: Final = Path(__file__).parents[2] / "docs" / "specification" / "state-machine.md"

STATES: Final = {
    "P": ("P0", "P1"),
    "R": ("R0", "R1"),
    "I": ("I0", "I1"),
    "any": ("P0", "P1", "R0", "R1", "I0", "I1", "A0", "A1", "W", "E0", "E1", "XW", "XE0", "XE1"),
}
"""What a cell means that names several states at once."""

WORKERS: Final = {
    "acquire": "acquire",
    "release (": "release",
    "record policy": "record_policy",
    "start attempt": "start_attempt",
    "record tool result": "record_tool_result",
    "commit step": "commit_step",
    "compact": "commit_compaction",
    "persist context": "persist_context",
    "schedule retry": "schedule_retry",
    "require action": "require_action",
    "finish turn": "finish_turn",
    "fail turn": "fail_turn",
    "finish interruption": "finish_interruption",
    "expire action, on_expiry go_on": "expire_action",
    "expire action, on_expiry end_turn": "expire_action_end_turn",
    "reconcile": "reconcile",
}
"""How the specification begins the name of a worker's trigger, and the trigger."""


class Arc(NamedTuple):
    """A cell: from a state by a trigger in a case (usual, or dead: a holder with a dead lease) to these states."""

    state: str
    trigger: str
    case: str
    outcomes: tuple[str, ...]


def section(number: int) -> str:
    """Return a numbered section of the specification."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    return text.partition(f"\n## {number}. ")[2].partition("\n## ")[0]


def tables(text: str) -> list[list[list[str]]]:
    """Return the Markdown tables of a text: rows of cells, the head first."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
        inside = True
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not all(re.fullmatch("-+", cell) for cell in cells):
            found[-1].append(cells)
    return found


def user_arcs(rows: list[list[str]]) -> Iterator[Arc]:
    """Yield the arcs of the users' table."""
    triggers = [re.sub(r"[ (]+", "_", head.replace("(queue)", "").strip(" )")) for head in rows[0][1:]]
    for name, *cells in rows[1:]:
        states = name.split(" / ")
        for trigger, cell in zip(triggers, cells, strict=True):
            parts = cell.split(" / ") if " / " in cell else [cell] * len(states)
            for state, part in zip(states, parts, strict=True):
                yield from _user_cell(state, trigger, part)


def _user_cell(state: str, trigger: str, cell: str) -> Iterator[Arc]:
    dead = re.search(r"\*([^*]+)\*", cell)
    usual = tuple(cell.replace(dead.group(0), "").split() if dead else cell.split())
    if usual not in ((), ("x",)):
        yield Arc(state, trigger, "usual", usual)
    if dead:
        yield Arc(state, trigger, "dead", tuple(dead.group(1).split()))


_FROM = r"(?P<source>[A-Za-z]\w*\*?(?:, [A-Z]\w*\*)*)"
_TO = r"(?P<dest>same with a dead holder|same|[A-Z]\w*(?: [A-Z]\w*)*)"
_WAY: Final = re.compile(f"{_FROM} -> {_TO}")


def ways(trigger: str, cell: str) -> Iterator[Arc]:
    """Yield the arcs of a "from -> to" cell; what stands in brackets explains and is left out."""
    for way in _WAY.finditer(re.sub(r"\([^()]*\)", "", cell)):
        for source in way["source"].split(", "):
            for state in STATES.get(source.rstrip("*"), (source,)):
                same = way["dest"].startswith("same") or STATES.get(way["dest"], ()) == STATES.get(source, ())[:2] != ()
                case = "dead" if way["dest"].endswith("dead holder") else "usual"
                yield Arc(state, trigger, case, (state,) if same else tuple(way["dest"].split()))


def worker_trigger(name: str) -> str:
    """Return the trigger that a row of the workers' table is about."""
    return max((start for start in WORKERS if name.startswith(start)), key=len)
