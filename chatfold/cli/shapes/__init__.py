"""All that ``--json`` prints. What holds of every shape is said by ``chatfold.cli.shapes.base``."""

from typing import Final

from chatfold.cli.shapes.base import Shape
from chatfold.cli.shapes.chats import ChatLine, EventLine, PartLine, ResetLine, Said, StateLine, Turned, WorkerLine
from chatfold.cli.shapes.checks import Diagnosed, GraphText, Problem, RepairedLine, Verified
from chatfold.cli.shapes.moving import Adopted, Exported, Imported, Migrated, RecordedLine

__all__ = [
    "Adopted",
    "ChatLine",
    "Diagnosed",
    "EventLine",
    "Exported",
    "GraphText",
    "Imported",
    "Migrated",
    "PartLine",
    "Problem",
    "RecordedLine",
    "RepairedLine",
    "ResetLine",
    "SHAPES",
    "Said",
    "Shape",
    "StateLine",
    "Turned",
    "Verified",
    "WorkerLine",
]

SHAPES: Final[tuple[type[Shape], ...]] = (
    ChatLine, EventLine, StateLine, PartLine, ResetLine, Turned, Diagnosed, Problem, Verified, RepairedLine, Imported,
    Adopted, Exported, GraphText, WorkerLine, Migrated, Said, RecordedLine,
)  # fmt: skip
"""All shapes, in the order of the documentation."""
