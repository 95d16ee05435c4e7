"""Looking into recorded chats, for notebooks, tests and tools: what `chatfold` itself gives, and more of it.

from chatfold.debugging import Checkpoints, changes, find_logs

Every name lives elsewhere and is imported when it is first used. To publish a name, add it in three places of this file
(a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs
    from chatfold.replaying.many import WorkFailed, each
    from chatfold.rerunning.comparison import Difference
    from chatfold.rerunning.limits import Unsupported
    from chatfold.rerunning.run import RerunReport, rerun
    from chatfold.rerunning.sections import SectionChange, Sections, read_sections, write_sections
    from events.checkpoints import Checkpoints
    from events.diff import MISSING, Change, changes, plain

_HOMES: Final = {
    "Change": "events.diff",
    "Checkpoints": "events.checkpoints",
    "Difference": "chatfold.rerunning.comparison",
    "Log": "chatfold.replaying.logs",
    "LogSource": "chatfold.replaying.logs",
    "MISSING": "events.diff",
    "RerunReport": "chatfold.rerunning.run",
    "SectionChange": "chatfold.rerunning.sections",
    "Sections": "chatfold.rerunning.sections",
    "SourceNotFound": "chatfold.replaying.logs",
    "Unsupported": "chatfold.rerunning.limits",
    "WorkFailed": "chatfold.replaying.many",
    "changes": "events.diff",
    "each": "chatfold.replaying.many",
    "find_log": "chatfold.replaying.logs",
    "find_logs": "chatfold.replaying.logs",
    "plain": "events.diff",
    "read_sections": "chatfold.rerunning.sections",
    "rerun": "chatfold.rerunning.run",
    "write_sections": "chatfold.rerunning.sections",
}

__all__ = [
    "MISSING",
    "Change",
    "Checkpoints",
    "Difference",
    "Log",
    "LogSource",
    "RerunReport",
    "SectionChange",
    "Sections",
    "SourceNotFound",
    "Unsupported",
    "WorkFailed",
    "changes",
    "each",
    "find_log",
    "find_logs",
    "plain",
    "read_sections",
    "rerun",
    "write_sections",
]

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
