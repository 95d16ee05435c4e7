"""A crash test of the engine: real worker processes on a real database, killed by a seeded schedule, then checked.

Owns the list of names; ``python -m chatfold.testing.crash --help`` says what it does.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold.testing.crash.config import CrashConfig, InvalidCrashConfig
    from chatfold.testing.crash.report import Report, Violation
    from chatfold.testing.crash.run import run_crash_test

__all__ = ["CrashConfig", "InvalidCrashConfig", "Report", "Violation", "run_crash_test"]

_HOMES: Final = {
    "CrashConfig": "chatfold.testing.crash.config",
    "InvalidCrashConfig": "chatfold.testing.crash.config",
    "Report": "chatfold.testing.crash.report",
    "Violation": "chatfold.testing.crash.report",
    "run_crash_test": "chatfold.testing.crash.run",
}

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
