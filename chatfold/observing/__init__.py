"""What observes an engine: metrics for Prometheus, spans for OpenTelemetry, debug records, or what you derive yourself.

Owns the list of names; they are imported when they are first used, and only then what their extras install.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.observing.prometheus import PrometheusObserver
    from chatfold.observing.spans import SpanObserver
    from generation.observing import CallBegun, CallEnded, Effect, Observer

__all__ = [
    "CallBegun",
    "CallEnded",
    "Effect",
    "Observer",
    "PrometheusObserver",
    "SpanObserver",
]

_SEAM: Final = "generation.observing"
_HOMES: Final = {
    "CallBegun": _SEAM,
    "CallEnded": _SEAM,
    "Effect": _SEAM,
    "Observer": _SEAM,
    "PrometheusObserver": "chatfold.observing.prometheus",
    "SpanObserver": "chatfold.observing.spans",
}

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
