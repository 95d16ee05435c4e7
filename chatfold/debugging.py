"""Looking into recorded chats, for notebooks, tests and tools: what `chatfold` itself gives, and more of it.

from chatfold.debugging import Checkpoints, changes, find_logs

Every name lives elsewhere and is imported when it is first used. To publish a name, add it in three places of this file
(a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.pictures.gantt import timeline_svg
    from chatfold.pictures.machine import Way, machine_svg, way_of
    from chatfold.pictures.report import report_html
    from chatfold.pictures.spans import Span, spans
    from chatfold.replaying.alignment import Comparison, Move, Moved, align, moves
    from chatfold.replaying.bisect import first_where
    from chatfold.replaying.conditions import Condition, ConditionError, parse_condition
    from chatfold.replaying.effects import ToolEffect, effects_after
    from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs
    from chatfold.replaying.many import WorkFailed, each
    from events.checkpoints import Checkpoints
    from events.diff import MISSING, Change, changes, plain

_HOMES: Final = {
    "Change": "events.diff",
    "Checkpoints": "events.checkpoints",
    "Comparison": "chatfold.replaying.alignment",
    "Condition": "chatfold.replaying.conditions",
    "ConditionError": "chatfold.replaying.conditions",
    "Log": "chatfold.replaying.logs",
    "LogSource": "chatfold.replaying.logs",
    "MISSING": "events.diff",
    "Move": "chatfold.replaying.alignment",
    "Moved": "chatfold.replaying.alignment",
    "SourceNotFound": "chatfold.replaying.logs",
    "Span": "chatfold.pictures.spans",
    "ToolEffect": "chatfold.replaying.effects",
    "Way": "chatfold.pictures.machine",
    "WorkFailed": "chatfold.replaying.many",
    "align": "chatfold.replaying.alignment",
    "changes": "events.diff",
    "each": "chatfold.replaying.many",
    "effects_after": "chatfold.replaying.effects",
    "find_log": "chatfold.replaying.logs",
    "find_logs": "chatfold.replaying.logs",
    "first_where": "chatfold.replaying.bisect",
    "machine_svg": "chatfold.pictures.machine",
    "moves": "chatfold.replaying.alignment",
    "parse_condition": "chatfold.replaying.conditions",
    "plain": "events.diff",
    "report_html": "chatfold.pictures.report",
    "spans": "chatfold.pictures.spans",
    "timeline_svg": "chatfold.pictures.gantt",
    "way_of": "chatfold.pictures.machine",
}

__all__ = [
    "MISSING",
    "Change",
    "Checkpoints",
    "Comparison",
    "Condition",
    "ConditionError",
    "Log",
    "LogSource",
    "Move",
    "Moved",
    "SourceNotFound",
    "Span",
    "ToolEffect",
    "Way",
    "WorkFailed",
    "align",
    "changes",
    "each",
    "effects_after",
    "find_log",
    "find_logs",
    "first_where",
    "machine_svg",
    "moves",
    "parse_condition",
    "plain",
    "report_html",
    "spans",
    "timeline_svg",
    "way_of",
]

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
