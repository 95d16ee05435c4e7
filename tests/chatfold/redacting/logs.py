"""Logs that the engine wrote, to be redacted: those of simulated worlds and of random conversations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from chatfold.testing.conversations import converse
from chatfold.testing.simulation.run import simulate
from chatfold.transfer import LoadedLog, stored_log


@contextmanager
def _gathered() -> Iterator[list[LoadedLog]]:
    logs: list[LoadedLog] = []

    async def noting(*args: Any, **named: Any) -> LoadedLog:
        logs.append(log := await stored_log(*args, **named))
        return log

    with patch("chatfold.testing.simulation.checks.stored_log", noting):
        yield logs


def simulated(first: int, count: int) -> list[LoadedLog]:
    """Return all logs of some simulated worlds: killed processes, takeovers, lost replies."""
    with _gathered() as logs:
        for seed in range(first, first + count):
            assert simulate(seed).violation is None
    return logs


def conversed(first: int, count: int) -> list[LoadedLog]:
    """Return all logs of some conversations: files, searches, hooks, forks, erased messages, three services."""
    with _gathered() as logs:
        for seed in range(first, first + count):
            assert converse(seed).violation is None
    return logs
