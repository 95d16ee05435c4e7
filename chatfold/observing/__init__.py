"""What observes an engine: metrics for Prometheus, spans for OpenTelemetry, debug records, or what you derive yourself.

Owns the list of names; they are imported when they are first used, and only then what their extras install.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.observing.debug import DebugRecords, DebugSwitch
    from chatfold.observing.prometheus import PrometheusObserver
    from chatfold.observing.records import (
        DebugExchange,
        DebugRecord,
        DebugRecordNotFound,
        DebugRun,
        DebugSink,
        FolderSink,
    )
    from chatfold.observing.spans import SpanObserver
    from generation.observing import CallBegun, CallEnded, Effect, Observer

__all__ = [
    "CallBegun",
    "CallEnded",
    "DebugExchange",
    "DebugRecord",
    "DebugRecordNotFound",
    "DebugRecords",
    "DebugRun",
    "DebugSink",
    "DebugSwitch",
    "Effect",
    "FolderSink",
    "Observer",
    "PrometheusObserver",
    "SpanObserver",
]

_SEAM: Final = "generation.observing"
_DEBUG: Final = "chatfold.observing.debug"
_RECORDS: Final = "chatfold.observing.records"
_HOMES: Final = {
    "CallBegun": _SEAM,
    "CallEnded": _SEAM,
    "DebugExchange": _RECORDS,
    "DebugRecord": _RECORDS,
    "DebugRecordNotFound": _RECORDS,
    "DebugRecords": _DEBUG,
    "DebugRun": _RECORDS,
    "DebugSink": _RECORDS,
    "DebugSwitch": _DEBUG,
    "Effect": _SEAM,
    "FolderSink": _RECORDS,
    "Observer": _SEAM,
    "PrometheusObserver": "chatfold.observing.prometheus",
    "SpanObserver": "chatfold.observing.spans",
}

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
