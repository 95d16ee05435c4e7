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
    from chatfold.redacting.check import ClearText, RedactionCheck, check_redacted
    from chatfold.redacting.errors import RedactionError, RedactionRulesError
    from chatfold.redacting.rewrite import Redacted, redact
    from chatfold.redacting.rules import RedactionRules, read_redaction_rules
    from chatfold.replaying.alignment import Comparison, Move, Moved, align, moves
    from chatfold.replaying.bisect import first_where
    from chatfold.replaying.causes import Cause, causes
    from chatfold.replaying.checking import CheckedLog, check_decisions, check_source
    from chatfold.replaying.conditions import Condition, ConditionError, parse_condition
    from chatfold.replaying.decisions import DecisionCheck, Drift, WhatIf, WhatIfFailed, decision_drifts
    from chatfold.replaying.effects import ToolEffect, effects_after
    from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs
    from chatfold.replaying.many import WorkFailed, each
    from chatfold.replaying.whatif import PolicyFields, WhatIfNames, WhatIfProblem
    from chatfold.replaying.words import Explanation, PassedBy, explain
    from chatfold.rerunning.comparison import Difference
    from chatfold.rerunning.limits import Unsupported
    from chatfold.rerunning.run import RerunReport, rerun
    from chatfold.rerunning.sections import SectionChange, Sections, read_sections, write_sections
    from events.checkpoints import Checkpoints
    from events.diff import MISSING, Change, changes, plain

_HOMES: Final = {
    "Cause": "chatfold.replaying.causes",
    "Change": "events.diff",
    "CheckedLog": "chatfold.replaying.checking",
    "Checkpoints": "events.checkpoints",
    "DecisionCheck": "chatfold.replaying.decisions",
    "Drift": "chatfold.replaying.decisions",
    "Explanation": "chatfold.replaying.words",
    "Difference": "chatfold.rerunning.comparison",
    "Log": "chatfold.replaying.logs",
    "LogSource": "chatfold.replaying.logs",
    "MISSING": "events.diff",
    "PassedBy": "chatfold.replaying.words",
    "PolicyFields": "chatfold.replaying.whatif",
    "ClearText": "chatfold.redacting.check",
    "Redacted": "chatfold.redacting.rewrite",
    "RedactionCheck": "chatfold.redacting.check",
    "RedactionError": "chatfold.redacting.errors",
    "RedactionRules": "chatfold.redacting.rules",
    "RedactionRulesError": "chatfold.redacting.errors",
    "SourceNotFound": "chatfold.replaying.logs",
    "WhatIf": "chatfold.replaying.decisions",
    "WhatIfFailed": "chatfold.replaying.decisions",
    "WhatIfNames": "chatfold.replaying.whatif",
    "WhatIfProblem": "chatfold.replaying.whatif",
    "RerunReport": "chatfold.rerunning.run",
    "SectionChange": "chatfold.rerunning.sections",
    "Sections": "chatfold.rerunning.sections",
    "Unsupported": "chatfold.rerunning.limits",
    "WorkFailed": "chatfold.replaying.many",
    "causes": "chatfold.replaying.causes",
    "Comparison": "chatfold.replaying.alignment",
    "Condition": "chatfold.replaying.conditions",
    "ConditionError": "chatfold.replaying.conditions",
    "Move": "chatfold.replaying.alignment",
    "Moved": "chatfold.replaying.alignment",
    "ToolEffect": "chatfold.replaying.effects",
    "SourceNotFound": "chatfold.replaying.logs",
    "Span": "chatfold.pictures.spans",
    "Way": "chatfold.pictures.machine",
    "WorkFailed": "chatfold.replaying.many",
    "align": "chatfold.replaying.alignment",
    "changes": "events.diff",
    "check_decisions": "chatfold.replaying.checking",
    "check_source": "chatfold.replaying.checking",
    "decision_drifts": "chatfold.replaying.decisions",
    "check_redacted": "chatfold.redacting.check",
    "each": "chatfold.replaying.many",
    "explain": "chatfold.replaying.words",
    "effects_after": "chatfold.replaying.effects",
    "find_log": "chatfold.replaying.logs",
    "find_logs": "chatfold.replaying.logs",
    "first_where": "chatfold.replaying.bisect",
    "machine_svg": "chatfold.pictures.machine",
    "moves": "chatfold.replaying.alignment",
    "parse_condition": "chatfold.replaying.conditions",
    "plain": "events.diff",
    "read_sections": "chatfold.rerunning.sections",
    "rerun": "chatfold.rerunning.run",
    "write_sections": "chatfold.rerunning.sections",
    "read_redaction_rules": "chatfold.redacting.rules",
    "redact": "chatfold.redacting.rewrite",
    "report_html": "chatfold.pictures.report",
    "spans": "chatfold.pictures.spans",
    "timeline_svg": "chatfold.pictures.gantt",
    "way_of": "chatfold.pictures.machine",
}

__all__ = [
    "MISSING",
    "Cause",
    "Change",
    "CheckedLog",
    "Checkpoints",
    "DecisionCheck",
    "Drift",
    "Explanation",
    "Log",
    "LogSource",
    "PassedBy",
    "PolicyFields",
    "ClearText",
    "Redacted",
    "RedactionCheck",
    "RedactionError",
    "RedactionRules",
    "RedactionRulesError",
    "SourceNotFound",
    "WhatIf",
    "WhatIfFailed",
    "WhatIfNames",
    "WhatIfProblem",
    "Difference",
    "RerunReport",
    "SectionChange",
    "Sections",
    "Unsupported",
    "WorkFailed",
    "causes",
    "Comparison",
    "Condition",
    "ConditionError",
    "Move",
    "Moved",
    "ToolEffect",
    "Span",
    "Way",
    "align",
    "changes",
    "check_decisions",
    "check_source",
    "decision_drifts",
    "check_redacted",
    "each",
    "explain",
    "effects_after",
    "find_log",
    "find_logs",
    "first_where",
    "machine_svg",
    "moves",
    "parse_condition",
    "plain",
    "read_sections",
    "rerun",
    "write_sections",
    "read_redaction_rules",
    "redact",
    "report_html",
    "spans",
    "timeline_svg",
    "way_of",
]

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
