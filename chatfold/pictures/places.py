"""Where the nodes of the machine stand in its picture. The machine is fixed, so nothing has to be laid out.

Two tables: the five statuses, and the execution states; each with the point before a chat exists, and Invalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from chatstate.diagram import START, Over
from events.errors import InvalidValue


class Place(NamedTuple):
    """The middle of a node."""

    x: float
    y: float


class Layout(NamedTuple):
    """A picture's size, the half size of its nodes, their places, and the lines of a label of the whole machine.

    Of more triggers than an arrow has lines, the number is told; all are in its tooltip.
    """

    width: float
    height: float
    half_width: float
    half_height: float
    places: Mapping[str, Place]
    lines: int


_STATUSES: Final = Layout(
    1000,
    620,
    72,
    27,
    MappingProxyType(
        {
            START: Place(60, 70),
            "pending": Place(210, 210),
            "running": Place(640, 210),
            "requires_action": Place(640, 470),
            "waiting": Place(210, 470),
            "error": Place(890, 300),
            "invalid": Place(890, 500),
        }
    ),
    4,
)

_EXECUTION: Final = Layout(
    1500,
    1030,
    42,
    22,
    MappingProxyType(
        {
            START: Place(60, 60),
            "P0": Place(300, 170), "P1": Place(300, 430),
            "R0": Place(700, 130), "R1": Place(700, 470),
            "I0": Place(1100, 170), "I1": Place(1100, 430),
            "A0": Place(800, 740), "A1": Place(620, 900),
            "W": Place(120, 700), "E0": Place(1380, 480), "E1": Place(1200, 740),
            "XW": Place(120, 960), "XE0": Place(1400, 960), "XE1": Place(1200, 960),
            "Invalid": Place(1400, 100),
        }
    ),
    2,
)  # fmt: skip

LAYOUTS: Final[Mapping[Over, Layout]] = MappingProxyType({"status": _STATUSES, "execution": _EXECUTION})
"""The layout by what the nodes are."""


def checked_over(over: object) -> None:
    """Check what the nodes of a picture shall be.

    Raises:
        InvalidValue: There is no such picture.
    """
    if not isinstance(over, str) or over not in LAYOUTS:
        said = repr(over) if isinstance(over, str) else type(over).__name__
        raise InvalidValue("$.over", f"must be {' or '.join(LAYOUTS)}, not {said}")
