"""``graph``: the state machine, or one chat's way through it, as text for tools that draw."""

from __future__ import annotations

from chatfold.cli.output import Out
from chatfold.cli.shapes import GraphText
from chatfold.cli.sources import opened
from chatstate.diagram import Edges, Over, dot, machine_edges, mermaid, path_edges


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

    Raises:
        typer.Exit: With 1, where the log is not as it was written.
    """
    if source is None:
        _draw(out, machine_edges(over), as_dot=as_dot, json=json)
        return
    with opened(out, source, db, log_level) as log:
        _draw(out, path_edges(log.recorded(), over), as_dot=as_dot, json=json)


def _draw(out: Out, edges: Edges, *, as_dot: bool, json: bool) -> None:
    text = dot(edges) if as_dot else mermaid(edges)
    if json:
        out.data.json(GraphText(format="dot" if as_dot else "mermaid", text=text))
    else:
        out.data.put(text)
