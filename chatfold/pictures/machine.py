"""The machine as a picture: its nodes at fixed places, and on it the way that a chat took, with counts and times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from chatfold.pictures.places import LAYOUTS, Layout, Place
from chatfold.pictures.spans import duration
from chatfold.pictures.styles import PICTURE
from chatfold.pictures.svg import clean, document, element, text
from chatstate.classify import STATUS_OF, classify
from chatstate.diagram import START, Edge, Edges, Over, machine_edges, node_of
from events.envelope import Recorded
from events.replay import replay

LABELS: Final = 4
"""Triggers that an arrow names; of more, the number is told and all are in its tooltip."""

LABEL: Final = 0.36
"""How far along a curve its label stands, from 0 to 1."""

START_SIZE: Final = 9

_STATUSES: Final = {str(x): status for x, status in STATUS_OF.items()}
_SOUND: Final = {*_STATUSES, *_STATUSES.values()}
"""Nodes that have the colour of a status, by its name; any other has that of an error."""


class Way(Struct, frozen=True):
    """The way of a chat: its edges with how often, the microseconds that it was in each node, and where it is now."""

    edges: Edges
    times: Mapping[str, int]
    now: str


def way_of(log: Iterable[Recorded], over: Over) -> Way:
    """Return the way that a chat took. The log is the whole log; contents are not read.

    Raises:
        EventsError: An event cannot be read or applied.
    """
    edges: dict[Edge, int] = {}
    times: dict[str, int] = {}
    node, since = START, 0
    for step in replay(log):
        at = step.recorded.envelope.recorded_at
        if node != START:
            times[node] = times.get(node, 0) + max(0, at - since)
        after = node_of(classify(step.after.control), over)
        edge = Edge(node, step.recorded.event.trigger, after)
        edges[edge] = edges.get(edge, 0) + 1
        node, since = after, at
    return Way(edges, times, node)


def machine_svg(over: Over, way: Way | None = None, *, times: bool = False) -> str:
    """Return the machine as SVG.

    Args:
        over: What the nodes are.
        way: The way of a chat that is drawn on it; None for the machine alone.
        times: Whether its nodes say how long the chat was in them.
    """
    layout = LAYOUTS[over]
    taken = {} if way is None else way.edges
    arrows: dict[tuple[str, str], dict[str, int]] = {}
    for edge in (*machine_edges(over), *taken):
        arrows.setdefault((edge.source, edge.dest), {})[edge.trigger] = taken.get(edge, 0)
    # Those that were taken come last, so that they lie above the others.
    ordered = sorted(arrows.items(), key=lambda each: any(each[1].values()))
    drawn = [
        _arrow(layout, ends, triggers, counted=way is not None, bent=ends[::-1] in arrows) for ends, triggers in ordered
    ]
    nodes = [_node(layout, name, place, way, times=times) for name, place in layout.places.items()]
    background = element("rect", class_="paper", width=layout.width, height=layout.height)
    title = "The state machine" if way is None else "The way of the chat through the state machine"
    # Lines, nodes, labels: what is read lies on top.
    lines, labels = zip(*drawn, strict=True)
    return document(layout.width, layout.height, [background, *lines, *nodes, *labels], title=title, style=PICTURE)


def _node(layout: Layout, name: str, place: Place, way: Way | None, *, times: bool) -> str:
    x, y = place
    if name == START:
        return element("circle", cx=x, cy=y, r=START_SIZE, class_="start")
    seen = way is None or name == way.now or any(name in (edge.source, edge.dest) for edge in way.edges)
    now = way is not None and name == way.now
    colour = f"stroke:var(--{_STATUSES.get(name, name) if name in _SOUND else 'error'})" if seen else ""
    box = element(
        "rect",
        x=x - layout.half_width, y=y - layout.half_height, width=2 * layout.half_width, height=2 * layout.half_height,
        rx=10, class_="node now" if now else "node", style=colour,
    )  # fmt: skip
    spent = way.times.get(name, 0) if way is not None and times else 0
    shown = [text(name, x, y - 3 if spent else y + 5, text_anchor="middle", class_="bold")]
    if spent:
        shown.append(text(duration(spent), x, y + 14, text_anchor="middle", class_="small soft"))
    return element("g", [box, *shown], class_="on" if seen else "off")


class _Curve(NamedTuple):
    """A curve: its path, the point where its label stands, and the head's points."""

    path: str
    label: Place
    head: str


def _arrow(
    layout: Layout, ends: tuple[str, str], triggers: Mapping[str, int], *, counted: bool, bent: bool
) -> tuple[str, str]:
    """Return an arrow and its label; of a way (``counted``), what was not taken has no label."""
    source, dest = ends
    taken = {trigger: times for trigger, times in triggers.items() if times}
    kind = " taken" if taken else ""
    one, other = layout.places[source], layout.places[dest]
    if source == dest:
        curve = _loop(layout, one, min(len(taken or triggers), LABELS))
    else:
        curve = _between(layout, one, other, bent=bent)
    said = [f"{name} x{times}" if times > 1 else name for name, times in (taken or triggers).items()]
    tip = element("title", [clean(f"{source} to {dest}: {', '.join(said)}")])
    line = element("path", [tip], d=curve.path, class_=f"arc{kind}")
    head = element("polygon", points=curve.head, class_=f"head{kind}")
    label = "" if counted and not taken else _label(curve.label, said, kind)
    return line + head, label


def _label(place: Place, said: list[str], kind: str) -> str:
    lines = said if len(said) <= LABELS else [*said[: LABELS - 1], f"and {len(said) - LABELS + 1} more"]
    top = place.y - 6.5 * (len(lines) - 1) + 4
    return "".join(
        text(line, place.x, top + 13 * at, text_anchor="middle", class_=f"small label{kind}")
        for at, line in enumerate(lines)
    )


def _loop(layout: Layout, at: Place, lines: int) -> _Curve:
    """A loop above a node of the upper half, below one of the lower half, where fewer arrows come in."""
    up = -1 if at.y < layout.height / 2 else 1
    x, y = at.x, at.y + up * layout.half_height
    wide = min(24.0, layout.half_width * 0.7)
    far = y + up * 44
    path = (
        f"M{x - wide:.1f},{y:.1f} C{x - wide - 16:.1f},{far:.1f} {x + wide + 16:.1f},{far:.1f} {x + wide:.1f},{y:.1f}"
    )
    return _Curve(
        path, Place(x, y + up * (42 + 6.5 * lines)), _head(Place(x + wide, y), Place(x + wide + 8, y + up * 22))
    )


def _between(layout: Layout, one: Place, other: Place, *, bent: bool) -> _Curve:
    """A curve from node to node; one of two that go to and fro keeps to its side."""
    dx, dy = other.x - one.x, other.y - one.y
    length = math.hypot(dx, dy)
    bend = (34 if bent else 0) + 0.02 * length
    middle = Place((one.x + other.x) / 2 - dy / length * bend, (one.y + other.y) / 2 + dx / length * bend)
    start, end = _edge(layout, one, middle), _edge(layout, other, middle)
    label = _on_curve(start, middle, end)
    path = f"M{start.x:.1f},{start.y:.1f} Q{middle.x:.1f},{middle.y:.1f} {end.x:.1f},{end.y:.1f}"
    return _Curve(path, label, _head(end, middle))


def _on_curve(start: Place, middle: Place, end: Place) -> Place:
    """The point of a curve where its label stands: before the middle, since that is where curves cross."""
    x, y = (
        a * (1 - LABEL) ** 2 + 2 * b * LABEL * (1 - LABEL) + c * LABEL**2
        for a, b, c in zip(start, middle, end, strict=True)
    )
    return Place(x, y)


def _edge(layout: Layout, node: Place, towards: Place) -> Place:
    """The point of a node's border on the way to another point."""
    dx, dy = towards.x - node.x, towards.y - node.y
    start = node == layout.places[START]
    wide, high = (START_SIZE, START_SIZE) if start else (layout.half_width, layout.half_height)
    scale = min(wide / abs(dx) if dx else math.inf, high / abs(dy) if dy else math.inf, 1.0)
    return Place(node.x + dx * scale, node.y + dy * scale)


def _head(tip: Place, came_from: Place) -> str:
    dx, dy = tip.x - came_from.x, tip.y - came_from.y
    length = math.hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    back = Place(tip.x - 9 * ux, tip.y - 9 * uy)
    points = (tip, Place(back.x - 4 * uy, back.y + 4 * ux), Place(back.x + 4 * uy, back.y - 4 * ux))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
