"""Hints of other processes on a SQLite file: found by looking, since nobody tells.

Owns the look. A commit by anybody changes the write-ahead log's file, which costs one ``stat`` to see. Only then is
SQLite asked whether it was another's (``PRAGMA data_version`` of the writing connection, whose own commits do not count
there), and only then which chats changed. Behind that SQLite is asked now and then whatever the file says: its times
are coarse.
"""

import asyncio
from typing import Final

from store import sqlite_sql as sql
from store.clock import Clock
from store.errors import StoreError
from store.log import get_logger
from store.notify import Bus
from store.sqlite_feed import changed_since, last_position
from store.sqlite_lane import ReadLane, WriteLane
from store.urls import SqliteUrl

_SURELY: Final = 0.5
"""Seconds after which SQLite is asked although the file looks as it did."""

_ASKS: Final = 3
"""How often SQLite is asked once the file has changed: a commit is written, synced, and only then to be seen."""

_BACK_OFF: Final = 5.0
"""Seconds between looks at most while the file cannot be read."""

_log = get_logger("chatfold.store")


class Poller:
    """Looks for what other processes commit, and publishes it, until it is stopped."""

    def __init__(self, settings: SqliteUrl, clock: Clock, bus: Bus, lanes: tuple[WriteLane, ReadLane]) -> None:
        self._pause = settings.poll
        self._log_file = settings.path.with_name(f"{settings.path.name}-wal")
        self._clock = clock
        self._bus = bus
        self._writer, self._reader = lanes
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look from now on; again, changes nothing."""
        if self._task is not None:
            return
        version = await self._writer.run(sql.data_version)
        position = await self._reader.run(last_position)
        if self._task is None:
            self._task = asyncio.create_task(self._look(version, position), name="chatfold-sqlite-poll")

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _look(self, version: int, position: int) -> None:
        seen, asks, pause, passed = self._stamp(), 0, self._pause, 0.0
        while True:
            await asyncio.sleep(pause)
            passed += pause
            if (stamp := self._stamp()) != seen:
                seen, asks = stamp, _ASKS
            elif passed >= _SURELY:
                asks = max(asks, 1)
            if not asks:
                continue
            try:
                found = await self._writer.run(sql.data_version)
                if found != version:
                    hints, position = await self._reader.run(changed_since, position, self._clock())
                    version = found
                    self._bus.publish(hints)
                asks, pause, passed = asks - 1, self._pause, 0.0
            except StoreError as error:
                pause = min(2 * pause, _BACK_OFF)
                _log.warning("hints_not_read", error=str(error))

    def _stamp(self) -> tuple[int, int, int] | None:
        """What a commit changes of the write-ahead log's file; None without one."""
        try:
            found = self._log_file.stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
