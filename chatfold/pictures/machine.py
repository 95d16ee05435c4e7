"""The machine as a picture: its nodes at fixed places, and on it the way that a chat took, with counts and times."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from chatfold.pictures.curves import START_SIZE, between, label_box, label_place, node_box
from chatfold.pictures.places import LAYOUTS, Layout, Place, checked_over
from chatfold.pictures.spans import duration
from chatfold.pictures.styles import PICTURE
from chatfold.pictures.svg import clean, document, element, text
from chatstate.classify import STATUS_OF, classify
from chatstate.diagram import START, Edge, Edges, Over, machine_edges, node_of
from events.envelope import Recorded
from events.given import checked_kind
from events.replay import replay

WAY_LINES: Final = 4
"""Lines of a label of a way, which has fewer of them than the whole machine."""

Ends: TypeAlias = tuple[str, str]
"""The nodes that an arrow leads from and to."""

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
        InvalidValue: It is no log, or there is no such picture.
    """
    checked_over(over)
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

    Raises:
        InvalidValue: There is no such picture, or what is given is no way.
    """
    checked_over(over)
    if way is not None:
        checked_kind(way, Way, "$.way", "the way of a chat, as way_of gives it")
    layout = LAYOUTS[over]
    taken = {} if way is None else way.edges
    arrows: dict[Ends, dict[str, int]] = {}
    for edge in (*machine_edges(over), *taken):
        arrows.setdefault((edge.source, edge.dest), {})[edge.trigger] = taken.get(edge, 0)
    # Those that were taken come last, so that they lie above the others; loops first, since they cannot give way.
    ordered = sorted(arrows.items(), key=lambda each: (any(each[1].values()), each[0][0] != each[0][1]))
    pen = _Arrows(layout, arrows, counted=way is not None)
    drawn = [pen.draw(ends, triggers) for ends, triggers in ordered]
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


class _Arrow(NamedTuple):
    """An arrow as it is drawn: its line with its head, and its label; what is read lies above all lines."""

    line: str
    label: str


class _Arrows:
    """Arrows of one picture, drawn one after the other: each label keeps clear of those before it."""

    def __init__(self, layout: Layout, pairs: Collection[Ends], *, counted: bool) -> None:
        self._layout = layout
        self._pairs = pairs
        self._counted = counted
        self._most = WAY_LINES if counted else layout.lines
        self._room = [node_box(layout, name) for name in layout.places]

    def draw(self, ends: Ends, triggers: Mapping[str, int]) -> _Arrow:
        """Draw an arrow; of a way (``counted``), what was not taken has no label."""
        taken = {trigger: times for trigger, times in triggers.items() if times}
        kind = " taken" if taken else ""
        said = [f"{name} x{times}" if times > 1 else name for name, times in (taken or triggers).items()]
        lines = [] if self._counted and not taken else _lines(said, self._most)
        path, head, place = self._loop(ends[0], lines) if ends[0] == ends[1] else self._curve(ends, lines)
        tip = element("title", [clean(f"{ends[0]} to {ends[1]}: {', '.join(said)}")])
        line = element("path", [tip], d=path, class_=f"arc{kind}") + element(
            "polygon", points=head, class_=f"head{kind}"
        )
        if lines:
            self._room.append(label_box(place, lines))
        return _Arrow(line, _label(place, lines, kind))

    def _curve(self, ends: Ends, lines: Sequence[str]) -> tuple[str, str, Place]:
        curve = between(self._layout, ends, bent=ends[::-1] in self._pairs)
        return curve.path, _head(curve.end, curve.middle), label_place(curve, lines, self._room)

    def _loop(self, name: str, lines: Sequence[str]) -> tuple[str, str, Place]:
        """A loop above a node of the upper half, below one of the lower half, where fewer arrows come in."""
        layout, at = self._layout, self._layout.places[name]
        up = -1 if at.y < layout.height / 2 else 1
        x, y = at.x, at.y + up * layout.half_height
        wide = min(24.0, layout.half_width * 0.7)
        far = y + up * 44
        turns = f"C{x - wide - 16:.1f},{far:.1f} {x + wide + 16:.1f},{far:.1f}"
        path = f"M{x - wide:.1f},{y:.1f} {turns} {x + wide:.1f},{y:.1f}"
        head = _head(Place(x + wide, y), Place(x + wide + 8, y + up * 22))
        return path, head, Place(x, y + up * (42 + 6.5 * len(lines)))


def _lines(said: list[str], most: int) -> list[str]:
    return said if len(said) <= most else [*said[: most - 1], f"and {len(said) - most + 1} more"]


def _label(place: Place, lines: Sequence[str], kind: str) -> str:
    top = place.y - 6.5 * (len(lines) - 1) + 4
    return "".join(
        text(line, place.x, top + 13 * at, text_anchor="middle", class_=f"small label{kind}")
        for at, line in enumerate(lines)
    )


def _head(tip: Place, came_from: Place) -> str:
    dx, dy = tip.x - came_from.x, tip.y - came_from.y
    length = math.hypot(dx, dy) or 1.0
    ux, uy = dx / length, dy / length
    back = Place(tip.x - 9 * ux, tip.y - 9 * uy)
    points = (tip, Place(back.x - 4 * uy, back.y + 4 * ux), Place(back.x + 4 * uy, back.y - 4 * ux))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
