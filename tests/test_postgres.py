"""The PostgreSQL of the test session works, and its databases are empty and separate."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.postgres import PostgresServer

OTHER_PROCESS = """
import pathlib, sys
from tests.postgres import PostgresServer
with PostgresServer.running(pathlib.Path(sys.argv[1])) as server:
    print(server.url)
"""


def test_a_database_is_empty_and_goes_away(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as first, postgres_server.database() as second:
        assert first != second
        with psycopg.connect(first) as connection:
            connection.execute("CREATE TABLE here (x integer)")
        with psycopg.connect(second) as connection:
            row = connection.execute("SELECT to_regclass('here')").fetchone()
        assert row == (None,)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(first)


def test_a_connection_left_open_does_not_keep_a_database(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        connection = psycopg.connect(url)
    with connection, pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")


def test_it_is_the_release_that_the_engine_is_tested_on(
    postgres_url: str, postgres_database: Callable[[], str]
) -> None:
    urls = {postgres_url, postgres_database(), postgres_database()}
    assert len(urls) == 3
    for url in urls:
        with psycopg.connect(url) as connection:
            assert connection.info.server_version >= 180000


def test_the_last_process_to_leave_stops_the_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    # A short path of its own: the name of a socket has about a hundred characters at most.
    folder = Path(os.environ["CHATFOLD_TESTS_RUNTIME"], "second")
    folder.mkdir()
    with PostgresServer.running(folder) as server:
        joined = subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS, str(folder)],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[1],
        )
        assert joined.stdout.strip() == server.url
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not (folder / "pg").exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.url)
