"""Looking into recorded chats, for notebooks, tests and tools: what `chatfold` itself gives, and more of it.

from chatfold.debugging import Checkpoints, changes, find_logs

Every name lives elsewhere and is imported when it is first used. To publish a name, add it in three places of this file
(a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.replaying.conditions import Condition, ConditionError, Moment, parse_condition
    from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs
    from chatfold.replaying.many import WorkFailed, each
    from events.checkpoints import Checkpoints
    from events.diff import MISSING, Change, changes, plain

_HOMES: Final = {
    "Change": "events.diff",
    "Checkpoints": "events.checkpoints",
    "Condition": "chatfold.replaying.conditions",
    "ConditionError": "chatfold.replaying.conditions",
    "Log": "chatfold.replaying.logs",
    "LogSource": "chatfold.replaying.logs",
    "MISSING": "events.diff",
    "Moment": "chatfold.replaying.conditions",
    "SourceNotFound": "chatfold.replaying.logs",
    "WorkFailed": "chatfold.replaying.many",
    "changes": "events.diff",
    "each": "chatfold.replaying.many",
    "find_log": "chatfold.replaying.logs",
    "find_logs": "chatfold.replaying.logs",
    "parse_condition": "chatfold.replaying.conditions",
    "plain": "events.diff",
}

__all__ = [
    "MISSING",
    "Change",
    "Checkpoints",
    "Condition",
    "ConditionError",
    "Log",
    "LogSource",
    "Moment",
    "SourceNotFound",
    "WorkFailed",
    "changes",
    "each",
    "find_log",
    "find_logs",
    "parse_condition",
    "plain",
]

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
