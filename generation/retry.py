"""When a failed model attempt is tried again. Pure: attempts and errors in, a wait out.

The wait itself is durable (a scheduled retry in the chat's log) and the business of the runner.
"""

from __future__ import annotations

from typing import Final

from generation.errors import ClassifiedError

SECOND_US: Final = 1_000_000
DELAYS_US: Final = tuple(seconds * SECOND_US for seconds in (1, 2, 4, 8, 16, 32, 60))
"""Wait after the first failed attempt, the second, and so on, in microseconds; the last one stays."""

DEFAULT_MAX_ATTEMPTS: Final = 26


def delay_us(failures: int) -> int:
    """Return the wait in microseconds after the first failed attempt (``failures`` 0), the second (1), and so on."""
    return DELAYS_US[min(max(failures, 0), len(DELAYS_US) - 1)]


def effective_delay_us(failures: int, retry_after_us: int | None, unit_us: int = SECOND_US) -> int:
    """Return the wait in microseconds: the table's, or what the provider asked for where that is longer.

    Args:
        failures: As for :func:`delay_us`.
        retry_after_us: What the provider asked for, in microseconds.
        unit_us: Microseconds that stand for one second of the table; what a provider asks for is not scaled.
    """
    return max(delay_us(failures) * unit_us // SECOND_US, retry_after_us or 0)


def retry_delay_us(
    error: ClassifiedError, attempts: int, max_attempts: int = DEFAULT_MAX_ATTEMPTS, *, unit_us: int = SECOND_US
) -> int | None:
    """Return how long to wait before the next model attempt, or None where there is none.

    Args:
        error: How the newest attempt failed.
        attempts: Model attempts made in a row, the failed one included (1 or more).
        max_attempts: The budget of attempts.
        unit_us: Microseconds that stand for one second of the table.
    """
    if not error.retryable or attempts >= max_attempts:
        return None
    return effective_delay_us(attempts - 1, error.retry_after_us, unit_us)
