"""The matrix: each conversation runs at each provider, on each kind of database."""

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.kit import SERVERS, Place
from tests.postgres import PostgresServer
from tests.store.small_segments import small_segments


@pytest.fixture(scope="session")
def shared_database(postgres_server: PostgresServer) -> Iterator[str]:
    """One PostgreSQL database for all conversations of this process: each has chats and an agent of its own."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of the store."""
    if request.param == "postgres":
        shared: str = request.getfixturevalue("shared_database")
        return shared
    return f"sqlite:///{tmp_path / 'chats.db'}"


@pytest.fixture(params=sorted(SERVERS))
def place(request: pytest.FixtureRequest, url: str) -> Place:
    """Where a conversation takes place: provider, store, and the name of its agent."""
    return Place(provider=request.param, url=url, agent=f"agent-{uuid.uuid4().hex}")


@pytest.fixture(autouse=True)
def _small_segments() -> Iterator[None]:
    """Conversations are short; so are the segments by which they are loaded."""
    with small_segments():
        yield


@pytest.fixture(autouse=True)
def no_errors_in_the_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A conversation may be rough, but what is logged as an error is a fault of the engine's."""
    yield
    errors = [record for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert [(record.name, record.getMessage(), record.exc_info) for record in errors] == []
