"""Looking into recorded chats, for notebooks, tests and tools: what `chatfold` itself gives, and more of it.

from chatfold.debugging import Checkpoints, changes, find_logs

Every name lives elsewhere and is imported when it is first used. To publish a name, add it in three places of this file
(a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.redacting.check import ClearText, RedactionCheck, check_redacted
    from chatfold.redacting.errors import RedactionError, RedactionRulesError
    from chatfold.redacting.rewrite import Redacted, redact
    from chatfold.redacting.rules import RedactionRules, read_redaction_rules
    from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs
    from chatfold.replaying.many import WorkFailed, each
    from events.checkpoints import Checkpoints
    from events.diff import MISSING, Change, changes, plain

_HOMES: Final = {
    "Change": "events.diff",
    "Checkpoints": "events.checkpoints",
    "ClearText": "chatfold.redacting.check",
    "Log": "chatfold.replaying.logs",
    "LogSource": "chatfold.replaying.logs",
    "MISSING": "events.diff",
    "Redacted": "chatfold.redacting.rewrite",
    "RedactionCheck": "chatfold.redacting.check",
    "RedactionError": "chatfold.redacting.errors",
    "RedactionRules": "chatfold.redacting.rules",
    "RedactionRulesError": "chatfold.redacting.errors",
    "SourceNotFound": "chatfold.replaying.logs",
    "WorkFailed": "chatfold.replaying.many",
    "changes": "events.diff",
    "check_redacted": "chatfold.redacting.check",
    "each": "chatfold.replaying.many",
    "find_log": "chatfold.replaying.logs",
    "find_logs": "chatfold.replaying.logs",
    "plain": "events.diff",
    "read_redaction_rules": "chatfold.redacting.rules",
    "redact": "chatfold.redacting.rewrite",
}

__all__ = [
    "MISSING",
    "Change",
    "Checkpoints",
    "ClearText",
    "Log",
    "LogSource",
    "Redacted",
    "RedactionCheck",
    "RedactionError",
    "RedactionRules",
    "RedactionRulesError",
    "SourceNotFound",
    "WorkFailed",
    "changes",
    "check_redacted",
    "each",
    "find_log",
    "find_logs",
    "plain",
    "read_redaction_rules",
    "redact",
]

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
