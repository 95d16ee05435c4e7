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
    from chatfold.replaying.condition_names import Moment
    from chatfold.replaying.conditions import Condition, ConditionError, parse_condition
    from chatfold.replaying.decisions import DecisionCheck, Drift, WhatIf, WhatIfFailed, WhatIfProblem, decision_drifts
    from chatfold.replaying.effects import ToolEffect, effects_after
    from chatfold.replaying.incidents import Incident, IncidentKind, incidents
    from chatfold.replaying.logs import Log, LogSource, SourceNotFound, find_log, find_logs
    from chatfold.replaying.many import WorkFailed, each
    from chatfold.replaying.whatif import PolicyFields, WhatIfNames
    from chatfold.replaying.words import Explanation, PassedBy, explain
    from chatfold.rerunning.comparison import Difference
    from chatfold.rerunning.kept import KeptFileError
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
    "ClearText": "chatfold.redacting.check",
    "Comparison": "chatfold.replaying.alignment",
    "Condition": "chatfold.replaying.conditions",
    "ConditionError": "chatfold.replaying.conditions",
    "DecisionCheck": "chatfold.replaying.decisions",
    "Difference": "chatfold.rerunning.comparison",
    "Drift": "chatfold.replaying.decisions",
    "Explanation": "chatfold.replaying.words",
    "Incident": "chatfold.replaying.incidents",
    "IncidentKind": "chatfold.replaying.incidents",
    "KeptFileError": "chatfold.rerunning.kept",
    "Log": "chatfold.replaying.logs",
    "LogSource": "chatfold.replaying.logs",
    "MISSING": "events.diff",
    "Moment": "chatfold.replaying.condition_names",
    "Move": "chatfold.replaying.alignment",
    "Moved": "chatfold.replaying.alignment",
    "PassedBy": "chatfold.replaying.words",
    "PolicyFields": "chatfold.replaying.whatif",
    "Redacted": "chatfold.redacting.rewrite",
    "RedactionCheck": "chatfold.redacting.check",
    "RedactionError": "chatfold.redacting.errors",
    "RedactionRules": "chatfold.redacting.rules",
    "RedactionRulesError": "chatfold.redacting.errors",
    "RerunReport": "chatfold.rerunning.run",
    "SectionChange": "chatfold.rerunning.sections",
    "Sections": "chatfold.rerunning.sections",
    "SourceNotFound": "chatfold.replaying.logs",
    "Span": "chatfold.pictures.spans",
    "ToolEffect": "chatfold.replaying.effects",
    "Unsupported": "chatfold.rerunning.limits",
    "Way": "chatfold.pictures.machine",
    "WhatIf": "chatfold.replaying.decisions",
    "WhatIfFailed": "chatfold.replaying.decisions",
    "WhatIfNames": "chatfold.replaying.whatif",
    "WhatIfProblem": "chatfold.replaying.decisions",
    "WorkFailed": "chatfold.replaying.many",
    "align": "chatfold.replaying.alignment",
    "causes": "chatfold.replaying.causes",
    "changes": "events.diff",
    "check_decisions": "chatfold.replaying.checking",
    "check_redacted": "chatfold.redacting.check",
    "check_source": "chatfold.replaying.checking",
    "decision_drifts": "chatfold.replaying.decisions",
    "each": "chatfold.replaying.many",
    "effects_after": "chatfold.replaying.effects",
    "explain": "chatfold.replaying.words",
    "find_log": "chatfold.replaying.logs",
    "find_logs": "chatfold.replaying.logs",
    "first_where": "chatfold.replaying.bisect",
    "incidents": "chatfold.replaying.incidents",
    "machine_svg": "chatfold.pictures.machine",
    "moves": "chatfold.replaying.alignment",
    "parse_condition": "chatfold.replaying.conditions",
    "plain": "events.diff",
    "read_redaction_rules": "chatfold.redacting.rules",
    "read_sections": "chatfold.rerunning.sections",
    "redact": "chatfold.redacting.rewrite",
    "report_html": "chatfold.pictures.report",
    "rerun": "chatfold.rerunning.run",
    "spans": "chatfold.pictures.spans",
    "timeline_svg": "chatfold.pictures.gantt",
    "way_of": "chatfold.pictures.machine",
    "write_sections": "chatfold.rerunning.sections",
}

__all__ = [
    "Cause",
    "Change",
    "CheckedLog",
    "Checkpoints",
    "ClearText",
    "Comparison",
    "Condition",
    "ConditionError",
    "DecisionCheck",
    "Difference",
    "Drift",
    "Explanation",
    "Incident",
    "IncidentKind",
    "KeptFileError",
    "Log",
    "LogSource",
    "MISSING",
    "Moment",
    "Move",
    "Moved",
    "PassedBy",
    "PolicyFields",
    "Redacted",
    "RedactionCheck",
    "RedactionError",
    "RedactionRules",
    "RedactionRulesError",
    "RerunReport",
    "SectionChange",
    "Sections",
    "SourceNotFound",
    "Span",
    "ToolEffect",
    "Unsupported",
    "Way",
    "WhatIf",
    "WhatIfFailed",
    "WhatIfNames",
    "WhatIfProblem",
    "WorkFailed",
    "align",
    "causes",
    "changes",
    "check_decisions",
    "check_redacted",
    "check_source",
    "decision_drifts",
    "each",
    "effects_after",
    "explain",
    "find_log",
    "find_logs",
    "first_where",
    "incidents",
    "machine_svg",
    "moves",
    "parse_condition",
    "plain",
    "read_redaction_rules",
    "read_sections",
    "redact",
    "report_html",
    "rerun",
    "spans",
    "timeline_svg",
    "way_of",
    "write_sections",
]

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
