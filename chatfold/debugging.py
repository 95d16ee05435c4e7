"""Looking into recorded chats, for notebooks, tests and tools: what `chatfold` itself gives, and more of it.

from chatfold.debugging import Checkpoints, changes, find_logs

Every name lives elsewhere and is imported when it is first used. To publish a name, add it in three places of this file
(a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.replaying.causes import Cause, causes
    from chatfold.replaying.checking import CheckedLog, check_decisions, check_source
    from chatfold.replaying.conditions import Condition, ConditionError, Moment, parse_condition
    from chatfold.replaying.decisions import DecisionCheck, Drift, WhatIf, WhatIfFailed, decision_drifts
    from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs
    from chatfold.replaying.many import WorkFailed, each
    from chatfold.replaying.whatif import PolicyFields, WhatIfNames, WhatIfProblem
    from chatfold.replaying.words import Explanation, PassedBy, explain
    from events.checkpoints import Checkpoints
    from events.diff import MISSING, Change, changes, plain

_HOMES: Final = {
    "Cause": "chatfold.replaying.causes",
    "Change": "events.diff",
    "CheckedLog": "chatfold.replaying.checking",
    "Checkpoints": "events.checkpoints",
    "Condition": "chatfold.replaying.conditions",
    "ConditionError": "chatfold.replaying.conditions",
    "DecisionCheck": "chatfold.replaying.decisions",
    "Drift": "chatfold.replaying.decisions",
    "Explanation": "chatfold.replaying.words",
    "Log": "chatfold.replaying.logs",
    "LogSource": "chatfold.replaying.logs",
    "MISSING": "events.diff",
    "Moment": "chatfold.replaying.conditions",
    "PassedBy": "chatfold.replaying.words",
    "PolicyFields": "chatfold.replaying.whatif",
    "SourceNotFound": "chatfold.replaying.logs",
    "WhatIf": "chatfold.replaying.decisions",
    "WhatIfFailed": "chatfold.replaying.decisions",
    "WhatIfNames": "chatfold.replaying.whatif",
    "WhatIfProblem": "chatfold.replaying.whatif",
    "WorkFailed": "chatfold.replaying.many",
    "causes": "chatfold.replaying.causes",
    "changes": "events.diff",
    "check_decisions": "chatfold.replaying.checking",
    "check_source": "chatfold.replaying.checking",
    "decision_drifts": "chatfold.replaying.decisions",
    "each": "chatfold.replaying.many",
    "explain": "chatfold.replaying.words",
    "find_log": "chatfold.replaying.logs",
    "find_logs": "chatfold.replaying.logs",
    "parse_condition": "chatfold.replaying.conditions",
    "plain": "events.diff",
}

__all__ = [
    "Cause",
    "Change",
    "CheckedLog",
    "Checkpoints",
    "Condition",
    "ConditionError",
    "DecisionCheck",
    "Drift",
    "Explanation",
    "Log",
    "LogSource",
    "MISSING",
    "Moment",
    "PassedBy",
    "PolicyFields",
    "SourceNotFound",
    "WhatIf",
    "WhatIfFailed",
    "WhatIfNames",
    "WhatIfProblem",
    "WorkFailed",
    "causes",
    "changes",
    "check_decisions",
    "check_source",
    "decision_drifts",
    "each",
    "explain",
    "find_log",
    "find_logs",
    "parse_condition",
    "plain",
]

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
