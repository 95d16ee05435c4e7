"""The server of the test session survives what processes of a session do to it: come, go, and die in between."""

import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
import pytest

from tests.meta.source import ROOT
from tests.postgres import PostgresServer, stop_left_over

VISIT: Final = """
import pathlib, sys, psycopg
from tests.postgres import PostgresServer
with PostgresServer.running(pathlib.Path(sys.argv[1])) as server, server.database() as url:
    print("in", flush=True)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE t (x integer)")
        connection.execute("INSERT INTO t SELECT generate_series(1, 1000)")
"""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_processes_come_and_go_and_die() -> None:
    chance = random.Random(1)
    with TemporaryDirectory(prefix="chatfold-soak-") as name:
        folder = Path(name)
        for round_number in range(20):
            visitors = [
                subprocess.Popen([sys.executable, "-c", VISIT, name], stdout=subprocess.PIPE, cwd=ROOT)
                for _ in range(4)
            ]
            for visitor in visitors:
                assert visitor.stdout is not None
                assert visitor.stdout.readline() == b"in\n"
                if chance.random() < 0.3:
                    visitor.kill()
            codes = [(visitor.communicate(), visitor.returncode)[1] for visitor in visitors]
            assert set(codes) <= {0, -9}, codes
            print(f"round {round_number}: exit codes {codes}")
        with PostgresServer.running(folder) as server:
            url = server.url
        stop_left_over(folder)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
