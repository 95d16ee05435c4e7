"""``graph``: the state machine, or one chat's way through it, as text for tools that draw."""

from __future__ import annotations

import asyncio

from chatfold.cli.output import Out
from chatfold.cli.shapes import GraphText
from chatfold.cli.sources import read_source
from chatstate.diagram import Over, dot, machine_edges, mermaid, path_edges


def run_graph(
    out: Out, source: str | None, *, as_dot: bool, over: Over, json: bool, db: str | None, log_level: str | None
) -> None:
    """Draw; see the command.

    Args:
        out: Where to.
        source: Whose way to draw; None for the machine itself.
        as_dot: Graphviz instead of Mermaid.
        over: What the nodes are.
        json: As a line of JSON.
        db: Which store.
        log_level: What is logged.
    """
    if source is None:
        edges = machine_edges(over)
    else:
        log = asyncio.run(read_source(source, db, log_level))
        edges = path_edges(log.recorded(), over)
    text = dot(edges) if as_dot else mermaid(edges)
    if json:
        out.data.json(GraphText(format="dot" if as_dot else "mermaid", text=text))
    else:
        out.data.put(text)
