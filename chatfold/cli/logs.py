"""Logging of the command line: to stderr, from the level that was asked for, one readable line each.

The layers log through ``store.log``, which hands records to standard logging; this module says what becomes of them.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final

import structlog

from chatfold._layers import LAYERS
from chatfold.cli.guard import UsageProblem
from store.log import LEVELS

OURS: Final = (*LAYERS, "chatfold")
"""The loggers that a level is for."""


def set_up(level: str) -> None:
    """Log to stderr.

    Args:
        level: One of ``LEVELS``, in any case.

    Raises:
        UsageProblem: Another one.
    """
    if level.lower() not in LEVELS:
        raise UsageProblem(f"--log-level={level}: must be one of {', '.join(LEVELS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ExtraAdder(),
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.ExceptionRenderer(),
                _line,
            ],
        )
    )
    root = logging.getLogger()
    for old in [each for each in root.handlers if getattr(each, "chatfold", False)]:
        root.removeHandler(old)
    handler.chatfold = True  # type: ignore[attr-defined]  # so that a second call replaces it
    root.addHandler(handler)
    # Libraries tell every step of theirs at debug; they are heard where something is wrong.
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    for layer in OURS:
        logging.getLogger(layer).setLevel(level.upper())


def _line(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> str:
    """Render a record as logfmt: time, level, logger, event, then what was bound."""
    if event.get("event") == "database_locked":
        # Somebody waits at the prompt for this; a sentence is all that they want of it.
        found = f"{event['file']} is locked by another process"
        return f"chatfold: {found}, waiting; `{event['look']}` shows which have it open"
    first = ("timestamp", "level", "logger", "event")
    head = " ".join(str(event.pop(name, "")) for name in first)
    trace = event.pop("exception", None)
    rest = " ".join(f"{name}={_value(value)}" for name, value in sorted(event.items()))
    return f"{head} {rest}".rstrip() + (f"\n{trace}" if trace else "")


def _value(value: object) -> str:
    text = str(value)
    return ascii(text) if not text.isprintable() or " " in text or not text else text
