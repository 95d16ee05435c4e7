"""The PostgreSQL of the test session works, and its databases are empty and separate."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import PostgresServer, sweep

OTHER_PROCESS = """
import pathlib, sys
from tests.postgres import PostgresServer, sweep
with PostgresServer.running(pathlib.Path(sys.argv[1])) as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""
KILLED_SESSION = "import pathlib, sys, tests.postgres as t\nt.claim(pathlib.Path(sys.argv[1]))" + OTHER_PROCESS


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


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for a server of the test's own; its path is short, since the name of a socket has to be."""
    folder = Path(tempfile.mkdtemp(dir=os.environ["TESTS_OF_CHATFOLD"]))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def start(program: str, folder: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", program, str(folder)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


def url_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_the_last_process_to_leave_stops_the_server(folder: Path) -> None:
    with start(OTHER_PROCESS, folder) as process:
        url = url_of(process)
        with PostgresServer.running(folder) as server:
            assert server.url == url
            process.communicate()  # ends its input, and it leaves
            assert process.returncode == 0
            with psycopg.connect(url) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
    assert not (folder / "pg").exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


def test_the_server_of_a_killed_session_is_swept_away(folder: Path) -> None:
    with start(KILLED_SESSION, folder) as process:
        url = url_of(process)
        sweep([folder])  # the session lives: nothing happens
        psycopg.connect(url).close()
        process.kill()
    psycopg.connect(url).close()  # the server outlived it
    sweep([folder])
    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
