"""What a crash test is asked for: how much, on which database, by which seed."""

from __future__ import annotations

import math
from typing import Final

from msgspec import Struct

from events.given import called

BOUNDS: Final = {
    "seed": (0, 2**32),
    "kills": (0, 1_000_000),
    "workers": (1, 64),
    "chats": (1, 100_000),
    "capacity": (1, 100_000),
    "rate": (0.01, 1000.0),
    "lease": (0.1, 60.0),
    "think": (0.0, 3600.0),
    "slow": (0.0, 1.0),
    "patience": (1.0, 3600.0),
}
"""Least and most of each number."""


class InvalidCrashConfig(ValueError):
    """A crash test was asked for that cannot be run."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field


class CrashConfig(Struct, frozen=True, kw_only=True):
    """A crash test. The same configuration gives the same schedule; times are seconds.

    Attributes:
        db: URL of a database with no chats in it (``sqlite:///PATH`` or ``postgresql://...``). Its connections, all of
            them, are terminated now and then, so nobody else should use it.
        seed: What the schedule, the users and the models are derived from.
        kills: Worker processes to be killed before the chats are brought to rest.
        workers: Worker processes at once.
        chats: Chats, each with a user.
        rate: Faults a second, on average; kills by failpoints come on top.
        capacity: Chats that a worker runs at once. With many, each kill strands many, and little gets done in between.
        lease: How long a worker's lease lasts.
        think: Mean time that a user waits between two actions.
        slow: The share of messages that are answered so slowly that a worker may be killed seconds into the answer.
        patience: How long the chats may take to come to rest once nothing is broken any more.
        failpoints: Whether workers are also killed and stopped at named points of the code.
        setup: ``module:function`` that each worker process calls before it begins: to plant a bug that must be found.

    Raises:
        InvalidCrashConfig: A number is out of its bounds, or the database is one in memory.
    """

    db: str
    seed: int = 1
    kills: int = 500
    workers: int = 4
    chats: int = 200
    rate: float = 8.0
    capacity: int = 12
    lease: float = 1.0
    think: float = 4.0
    slow: float = 0.1
    patience: float = 120.0
    failpoints: bool = True
    setup: str = ""

    def __post_init__(self) -> None:
        for field, (least, most) in BOUNDS.items():
            value = getattr(self, field)
            whole = isinstance(least, int)
            if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or math.isnan(value):
                raise InvalidCrashConfig(field, f"must be a {'whole number' if whole else 'number'}, not {value!r}")
            if not least <= value <= most:
                raise InvalidCrashConfig(field, f"must be between {least:g} and {most:g}, not {value}")
        for field, kind, wanted in (
            ("db", str, "a URL"),
            ("setup", str, "a text"),
            ("failpoints", bool, "true or false"),
        ):
            if not isinstance(getattr(self, field), kind):
                raise InvalidCrashConfig(field, f"must be {wanted}, not {called(getattr(self, field))}")
        if not self.db.startswith(("sqlite:", "postgresql:", "postgres:")):
            raise InvalidCrashConfig("db", f"worker processes share no database {self.db!r}; use SQLite or PostgreSQL")
        if self.setup and not all(part.strip() for part in self.setup.partition(":")):
            raise InvalidCrashConfig("setup", f"must be module:function, not {self.setup!r}")

    @property
    def on_postgres(self) -> bool:
        """Whether the database has connections that can be terminated."""
        return self.db.startswith("postgres")
