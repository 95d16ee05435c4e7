"""Peers that do the same work on the same databases in the same run, where they are installed (``peers.txt``).

Only their public interfaces are used, each in the variant that was fastest when it was measured.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.work import Contender

FACTORS: Final[dict[str, int]] = {"langgraph": 12, "dbos": 20}
"""How many times faster than the best variant of a peer the engine must be with many chats at once on PostgreSQL."""

_MODULES: Final = {
    "langgraph": "with_langgraph",
    "dbos": "with_dbos",
    "eventsourcing": "with_eventsourcing",
    "agents": "with_openai_agents",
}
"""What must be importable, and the module here that uses it."""


def on_postgres(database: Callable[[], str]) -> list[Contender]:
    """Return the peers that are installed and keep chats in PostgreSQL, each with a database of its own."""
    return [make(database()) for module in _installed() for make in module.ON_POSTGRES]


def on_sqlite(folder: Path) -> list[Contender]:
    """Return the peers that are installed and keep chats in SQLite, each with a file of its own."""
    return [make(folder) for module in _installed() for make in module.ON_SQLITE]


def missing() -> list[str]:
    """Return the peers that are not installed."""
    return [name for name in _MODULES if importlib.util.find_spec(name) is None]


def _installed() -> list[Any]:
    absent = missing()
    return [
        importlib.import_module(f"tests.benchmarks.peers.{module}")
        for name, module in _MODULES.items()
        if name not in absent
    ]
