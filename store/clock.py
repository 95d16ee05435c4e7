"""The clock of back ends that have none of their own: the machine's, in microseconds UTC."""

import time
from collections.abc import Callable
from typing import TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Returns the time in microseconds UTC."""


def wall_clock() -> int:
    """Return the machine's time in microseconds UTC."""
    return time.time_ns() // 1000
