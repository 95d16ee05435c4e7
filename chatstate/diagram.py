"""Diagrams of the machine from its table, and of the way that one chat took through it: Mermaid, DOT and Markdown.

Owns edges and their three notations; which transitions there are is the table's (``chatstate.table``). Nothing here is
drawn: the output is text for tools that draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from chatstate.classify import STATUS_OF, X, classify
from chatstate.table import ANY_TRIGGERS, TABLE
from events.envelope import Recorded
from events.replay import replay

Over: TypeAlias = Literal["status", "execution"]
"""What the nodes of a diagram are: the five statuses, or the execution states."""


class Edge(NamedTuple):
    """An arrow between two nodes."""

    source: str
    trigger: str
    dest: str


Edges: TypeAlias = Mapping[Edge, int]
"""Edges, and how often each was taken; 0 where nothing is counted."""

_NEWLINE: Final = "\\n"
"""A line break in a label of DOT: a backslash and an n."""

START: Final = "none"
"""The node before a chat exists."""


def machine_edges(over: Over = "status", *, everything: bool = False) -> dict[Edge, int]:
    """Return the machine's edges, not counted.

    Args:
        over: What the nodes are.
        everything: Whether to include the triggers that never change the state (title, labels and the like).
    """
    edges: dict[Edge, int] = {}
    for x, cells in TABLE.items():
        for trigger, cell in cells.items():
            if everything or trigger not in ANY_TRIGGERS:
                edges |= {Edge(node_of(x, over), trigger, node_of(outcome, over)): 0 for outcome in cell.outcomes}
    return edges


def path_edges(log: Iterable[Recorded], over: Over = "status") -> dict[Edge, int]:
    """Return the edges that a chat took, with how often, in the order of the first time. The log is the whole log."""
    edges: dict[Edge, int] = {}
    for step in replay(log):
        before, after = classify(step.before.control), classify(step.after.control)
        edge = Edge(node_of(before, over), step.recorded.event.trigger, node_of(after, over))
        edges[edge] = edges.get(edge, 0) + 1
    return edges


def mermaid(edges: Edges) -> str:
    """Return a Mermaid state diagram; arrows between the same nodes are drawn as one."""
    lines = ["stateDiagram-v2"]
    for (source, dest), label in _arrows(edges).items():
        lines.append(f"    {_start(source)} --> {dest}: {', '.join(label)}")
    return "\n".join(lines) + "\n"


def dot(edges: Edges) -> str:
    """Return a graph in Graphviz' DOT language."""
    lines = ["digraph chat {", "    rankdir=LR;", "    node [shape=box, style=rounded];"]
    for (source, dest), label in _arrows(edges).items():
        lines.append(f'    "{source}" -> "{dest}" [label="{_NEWLINE.join(label)}"];')
    return "\n".join([*lines, "}"]) + "\n"


def markdown(edges: Edges) -> str:
    """Return a table, one row per edge, with counts where there are any."""
    counted = any(edges.values())
    head = ["from", "trigger", "to", *(["times"] if counted else [])]
    rows = [[*edge, *([str(times)] if counted else [])] for edge, times in edges.items()]
    return table(head, rows)


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def node_of(x: X, over: Over) -> str:
    """Return the node that an execution state is, or is a part of."""
    if x is X.N:
        return START
    return STATUS_OF.get(x, "invalid") if over == "status" else str(x)


def _arrows(edges: Edges) -> dict[tuple[str, str], list[str]]:
    arrows: dict[tuple[str, str], list[str]] = {}
    for edge, times in edges.items():
        label = f"{edge.trigger} x{times}" if times > 1 else edge.trigger
        arrows.setdefault((edge.source, edge.dest), []).append(label)
    return arrows


def _start(node: str) -> str:
    return "[*]" if node == START else node
