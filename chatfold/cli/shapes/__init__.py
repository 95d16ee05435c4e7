"""All that ``--json`` prints. What holds of every shape is said by ``chatfold.cli.shapes.base``."""

from typing import Final

from chatfold.cli.shapes.base import Shape
from chatfold.cli.shapes.chats import ChatLine, EventLine, PartLine, ResetLine, Said, StateLine, Turned, WorkerLine
from chatfold.cli.shapes.checks import Diagnosed, GraphText, Problem, RepairedLine, Verified
from chatfold.cli.shapes.moving import Adopted, Exported, Imported, Migrated
from chatfold.cli.shapes.replaying import DriftLine, ReplayedLog, WhyLine

__all__ = [
    "Adopted",
    "ChatLine",
    "Diagnosed",
    "DriftLine",
    "EventLine",
    "Exported",
    "GraphText",
    "Imported",
    "Migrated",
    "PartLine",
    "Problem",
    "RepairedLine",
    "ReplayedLog",
    "ResetLine",
    "SHAPES",
    "Said",
    "Shape",
    "StateLine",
    "Turned",
    "Verified",
    "WhyLine",
    "WorkerLine",
]

SHAPES: Final[tuple[type[Shape], ...]] = (
    ChatLine, EventLine, StateLine, PartLine, ResetLine, Turned, Diagnosed, Problem, Verified, RepairedLine, Imported,
    Adopted, Exported, GraphText, WorkerLine, Migrated, Said, DriftLine, ReplayedLog, WhyLine,
)  # fmt: skip
"""All shapes, in the order of the documentation."""
