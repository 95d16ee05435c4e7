"""Database time as this process estimates it: a clock of its own, corrected by what the database said last."""

from __future__ import annotations

from collections.abc import Callable

from store.clock import wall_clock


class DatabaseClock:
    """Gives microseconds UTC of the database's clock, within the time that a heartbeat takes.

    It goes on by a clock that nobody sets: where the machine's is, the estimate stays, until the database says more.

    Args:
        boot: Seconds of a clock that goes on while the machine sleeps and is never set.
    """

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self.set(wall_clock())

    def set(self, database_now: int) -> None:
        """Take the database's time, just read."""
        self._offset = database_now - round(self._boot() * 1e6)

    def now(self) -> int:
        """Return the estimate."""
        return round(self._boot() * 1e6) + self._offset
