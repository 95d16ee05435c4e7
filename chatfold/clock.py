"""Database time as this process estimates it: its own clock, corrected by what the database said last."""

from __future__ import annotations

from store.clock import wall_clock


class DatabaseClock:
    """Gives microseconds UTC of the database's clock, within the time that a heartbeat takes."""

    def __init__(self) -> None:
        self._offset = 0

    def set(self, database_now: int) -> None:
        """Take the database's time, just read."""
        self._offset = database_now - wall_clock()

    def now(self) -> int:
        """Return the estimate."""
        return wall_clock() + self._offset
