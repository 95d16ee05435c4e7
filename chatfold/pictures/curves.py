"""Curves between the nodes of a picture, and where a label finds room on them.

Owns the geometry alone: what an arrow is, and how it looks, is the picture's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from chatfold.pictures.places import Layout, Place
from chatstate.diagram import START

START_SIZE: Final = 9
"""Radius of the point before a chat exists."""

_BEND: Final = 34
"""How far each of two curves that go to and fro keeps to its side."""
_ALONG: Final = (0.36, 0.44, 0.5, 0.28, 0.58, 0.66, 0.22, 0.74, 0.82, 0.16)
"""Where on a curve its label may stand, from 0 to 1, the best first: before the middle, where fewer of them cross."""
_LINE: Final = 13.0
_LETTER: Final = 6.2
"""Height of a line of a label, and the width of a letter at most times."""


class Box(NamedTuple):
    """A box, by its middle and its half size."""

    x: float
    y: float
    half_width: float
    half_height: float

    def meets(self, other: Box) -> bool:
        """Whether they have room in common."""
        wide, high = self.half_width + other.half_width, self.half_height + other.half_height
        return abs(self.x - other.x) < wide and abs(self.y - other.y) < high


class Curve(NamedTuple):
    """A quadratic curve from a node's border to another's; it heads for ``middle`` and turns there."""

    start: Place
    middle: Place
    end: Place

    @property
    def path(self) -> str:
        """The curve as SVG says it."""
        (x, y), (a, b), (c, d) = self
        return f"M{x:.1f},{y:.1f} Q{a:.1f},{b:.1f} {c:.1f},{d:.1f}"

    def point(self, along: float) -> Place:
        """Return the point at a part of its course, from 0 to 1."""
        back = 1 - along
        x, y = (a * back**2 + 2 * b * along * back + c * along**2 for a, b, c in zip(*self, strict=True))
        return Place(x, y)


def node_box(layout: Layout, name: str, margin: float = 0) -> Box:
    """Return the box of a node, with a margin around it."""
    x, y = layout.places[name]
    wide, high = (START_SIZE, START_SIZE) if name == START else (layout.half_width, layout.half_height)
    return Box(x, y, wide + margin, high + margin)


def between(layout: Layout, ends: tuple[str, str], *, bent: bool) -> Curve:
    """Return a curve from node to node. The places of the nodes are chosen so that it goes through no other.

    Args:
        layout: Where the nodes are.
        ends: The nodes it leads from and to.
        bent: Whether another one leads back: each of the two keeps to its side.
    """
    one, other = (layout.places[name] for name in ends)
    dx, dy = other.x - one.x, other.y - one.y
    length = math.hypot(dx, dy)
    bend = (_BEND if bent else 0) + 0.02 * length
    middle = Place((one.x + other.x) / 2 - dy / length * bend, (one.y + other.y) / 2 + dx / length * bend)
    return Curve(_border(layout, ends[0], middle), middle, _border(layout, ends[1], middle))


def _border(layout: Layout, name: str, towards: Place) -> Place:
    """The point of a node's border on the way to another point."""
    node = node_box(layout, name)
    dx, dy = towards.x - node.x, towards.y - node.y
    wide = node.half_width / abs(dx) if dx else math.inf
    scale = min(wide, node.half_height / abs(dy) if dy else math.inf, 1.0)
    return Place(node.x + dx * scale, node.y + dy * scale)


def label_box(at: Place, lines: Sequence[str]) -> Box:
    """Return the room that a label takes, around its middle."""
    return Box(at.x, at.y, max(map(len, lines), default=0) * _LETTER / 2, len(lines) * _LINE / 2)


def label_place(curve: Curve, lines: Sequence[str], taken: Iterable[Box]) -> Place:
    """Return where a label stands on its curve: clear of what has its room already, or of most of it."""
    boxes = list(taken)

    def met(place: Place) -> int:
        box = label_box(place, lines)
        return sum(map(box.meets, boxes))

    return min((curve.point(along) for along in _ALONG), key=met)
