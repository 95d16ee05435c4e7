"""Where the nodes of the machine stand in its picture. The machine is fixed, so nothing has to be laid out.

Two tables: the five statuses, and the execution states; each with the point before a chat exists, and Invalid.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from chatstate.diagram import START, Over


class Place(NamedTuple):
    """The middle of a node."""

    x: float
    y: float


class Layout(NamedTuple):
    """A picture's size, the half size of its nodes, and their places."""

    width: float
    height: float
    half_width: float
    half_height: float
    places: Mapping[str, Place]


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
)

_EXECUTION: Final = Layout(
    1100,
    820,
    42,
    22,
    MappingProxyType(
        {
            START: Place(60, 60),
            "P0": Place(190, 170), "P1": Place(190, 330),
            "R0": Place(480, 170), "R1": Place(480, 330),
            "I0": Place(770, 170), "I1": Place(770, 330),
            "A0": Place(620, 520), "A1": Place(620, 670),
            "W": Place(190, 560), "E0": Place(960, 430), "E1": Place(960, 560),
            "XW": Place(190, 740), "XE0": Place(800, 740), "XE1": Place(960, 740),
            "Invalid": Place(1040, 60),
        }
    ),
)  # fmt: skip

LAYOUTS: Final[Mapping[Over, Layout]] = MappingProxyType({"status": _STATUSES, "execution": _EXECUTION})
"""The layout by what the nodes are."""
