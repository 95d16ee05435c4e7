"""Loggers of the layers: structlog over the standard library's logging.

A library is quiet until its application asks: records go to the logger of the module's name under standard logging,
with what was bound as extra fields. No content is logged at info and above.
"""

from __future__ import annotations

import logging
from typing import Final, cast

import structlog
from structlog.stdlib import BoundLogger
from structlog.typing import EventDict, WrappedLogger

_ARGUMENTS: Final = frozenset({"exc_info", "stack_info"})
_TAKEN: Final = frozenset(vars(logging.makeLogRecord({}))) - _ARGUMENTS | {"message", "asctime"}
"""Names that a record has already: standard logging raises where a field takes one of them."""

LEVELS: Final = ("debug", "info", "warning", "error")
"""Levels that can be asked for, in any case."""


def get_logger(name: str) -> BoundLogger:
    """Return the logger of a module."""
    logger = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=BoundLogger,
        processors=[structlog.stdlib.filter_by_level, _rename_taken, structlog.stdlib.render_to_log_kwargs],
    )
    return cast("BoundLogger", logger)


def _rename_taken(_logger: WrappedLogger, _method: str, fields: EventDict) -> EventDict:
    """Let a field such as ``thread`` be logged as ``thread_``: a line of a log must not fail what it tells of."""
    return {f"{name}_" if name in _TAKEN else name: value for name, value in fields.items()}
