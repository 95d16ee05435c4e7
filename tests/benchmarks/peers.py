"""Peers that do the same work on the same databases, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.benchmarks.work import Contender

FACTORS: Final[dict[str, int]] = {"langgraph": 12, "dbos": 20}
"""How many times faster than the best variant of a peer the engine must be."""


def on_postgres(database: Callable[[], str]) -> list[Contender]:
    """Return the peers that are installed and keep chats in PostgreSQL."""
    del database
    return []


def on_sqlite(folder: Path) -> list[Contender]:
    """Return the peers that are installed and keep chats in SQLite."""
    del folder
    return []
