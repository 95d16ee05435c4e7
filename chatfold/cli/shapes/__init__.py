"""All that ``--json`` prints. What holds of every shape is said by ``chatfold.cli.shapes.base``."""

from typing import Final

from chatfold.cli.shapes.base import Shape
from chatfold.cli.shapes.chats import ChatLine, EventLine, PartLine, ResetLine, Said, StateLine, Turned, WorkerLine
from chatfold.cli.shapes.checks import Diagnosed, GraphText, Problem, RepairedLine, Verified
from chatfold.cli.shapes.comparing import ChangeLine, Compared, FirstWhere, ForkedLine
from chatfold.cli.shapes.moving import Adopted, Exported, Imported, Migrated

__all__ = [
    "Adopted",
    "ChangeLine",
    "ChatLine",
    "Compared",
    "Diagnosed",
    "EventLine",
    "Exported",
    "FirstWhere",
    "ForkedLine",
    "GraphText",
    "Imported",
    "Migrated",
    "PartLine",
    "Problem",
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
    Adopted, Exported, GraphText, Compared, ChangeLine, FirstWhere, ForkedLine, WorkerLine, Migrated, Said,
)  # fmt: skip
"""All shapes, in the order of the documentation."""
