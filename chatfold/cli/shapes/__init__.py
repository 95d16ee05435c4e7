"""All that ``--json`` prints. What holds of every shape is said by ``chatfold.cli.shapes.base``."""

from typing import Final

from chatfold.cli.shapes.base import Shape
from chatfold.cli.shapes.chats import ChatLine, EventLine, PartLine, ResetLine, Said, StateLine, Turned, WorkerLine
from chatfold.cli.shapes.checks import Diagnosed, Examined, GraphText, Problem, RepairedLine, Verified
from chatfold.cli.shapes.comparing import ChangeLine, Compared, FirstWhere, ForkedLine
from chatfold.cli.shapes.corpus import AddedLog, CorpusLine, CoverageLine, RefoldedLog
from chatfold.cli.shapes.moving import Adopted, Exported, Imported, Migrated, RecordedLine, UnusedRenameLine
from chatfold.cli.shapes.replaying import DriftLine, ReplayedLog, WhyLine
from chatfold.cli.shapes.reruns import RerunLine, SectionLine

__all__ = [
    "AddedLog",
    "CorpusLine",
    "CoverageLine",
    "Adopted",
    "ChangeLine",
    "ChatLine",
    "Compared",
    "Diagnosed",
    "DriftLine",
    "EventLine",
    "Examined",
    "Exported",
    "FirstWhere",
    "ForkedLine",
    "GraphText",
    "Imported",
    "Migrated",
    "PartLine",
    "Problem",
    "RecordedLine",
    "RefoldedLog",
    "RepairedLine",
    "ReplayedLog",
    "RerunLine",
    "ResetLine",
    "SHAPES",
    "Said",
    "SectionLine",
    "Shape",
    "StateLine",
    "Turned",
    "UnusedRenameLine",
    "Verified",
    "WhyLine",
    "WorkerLine",
]

SHAPES: Final[tuple[type[Shape], ...]] = (
    ChatLine, EventLine, StateLine, PartLine, ResetLine, Turned, Diagnosed, Examined, Problem, Verified, RepairedLine,
    Imported, Adopted, Exported, GraphText, WorkerLine, Migrated, Said, DriftLine, ReplayedLog, WhyLine, RerunLine,
    SectionLine, RecordedLine, UnusedRenameLine, CorpusLine, CoverageLine, AddedLog, RefoldedLog, Compared, ChangeLine,
    FirstWhere, ForkedLine,
)  # fmt: skip
"""All shapes, in the order of the documentation."""
