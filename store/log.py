"""Loggers of the layers: structlog over the standard library's logging.

A library is quiet until its application asks: records go to the logger of the module's name under standard logging,
with what was bound as extra fields. No content is logged at info and above.
"""

from __future__ import annotations

import logging
from typing import cast

import structlog
from structlog.stdlib import BoundLogger


def get_logger(name: str) -> BoundLogger:
    """Return the logger of a module."""
    logger = structlog.wrap_logger(
        logging.getLogger(name),
        wrapper_class=BoundLogger,
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    )
    return cast("BoundLogger", logger)
