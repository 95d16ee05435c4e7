"""What measurements share: a PostgreSQL that keeps its promises (fsync on), and databases in it.

``CHATFOLD_BENCH_POSTGRES`` names another server to measure on, as a superuser's URL; else the wheel's is started.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.postgres import DURABLE, PostgresServer

_SERVER = os.environ.get("CHATFOLD_BENCH_POSTGRES")


@pytest.fixture(scope="session")
def durable_server() -> Iterator[PostgresServer]:
    """A server with fsync on."""
    if _SERVER is not None:
        yield PostgresServer(_SERVER)
        return
    # Beside the tests' own server and not in pytest's folders: those are closed to the user that the server runs as.
    folder = Path(os.environ["TESTS_OF_CHATFOLD"], "durable")
    folder.mkdir()
    with PostgresServer.running(folder, DURABLE) as server:
        yield server


@pytest.fixture
def durable_database(durable_server: PostgresServer) -> Iterator[Callable[[], str]]:
    """Make empty databases that survive the machine's power, and give their URLs."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(durable_server.database())
