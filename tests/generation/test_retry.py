"""How long the engine waits before it tries again, and when it does not."""

from __future__ import annotations

import pytest

from generation.errors import ClassifiedError
from generation.retry import delay_us, effective_delay_us, retry_delay_us

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (10, 60), (100, 60), (-1, 1)]
)
def test_the_table(failures: int, seconds: int) -> None:
    assert delay_us(failures) == seconds * SECOND


@pytest.mark.parametrize(
    ("failures", "asked", "seconds"),
    [(0, None, 1), (0, 0, 1), (3, 5 * SECOND, 8), (3, 9 * SECOND, 9), (6, 900 * SECOND, 900)],
)
def test_the_longer_wait_counts(failures: int, asked: int | None, seconds: int) -> None:
    assert effective_delay_us(failures, asked) == seconds * SECOND


@pytest.mark.parametrize(
    ("retryable", "attempts", "wait"),
    [(True, 1, SECOND), (True, 2, 2 * SECOND), (True, 25, 60 * SECOND), (True, 26, None), (False, 1, None)],
)
def test_the_budget(retryable: bool, attempts: int, wait: int | None) -> None:
    error = ClassifiedError(kind="generic", message="x", retryable=retryable)
    assert retry_delay_us(error, attempts) == wait


def test_a_shorter_unit_scales_the_table_alone() -> None:
    assert effective_delay_us(2, None, unit_us=1_000) == 4_000
    assert effective_delay_us(2, 9_000, unit_us=1_000) == 9_000


def test_a_budget_of_one_is_never_retried() -> None:
    assert retry_delay_us(ClassifiedError(kind="timeout", message="x", retryable=True), 1, 1) is None
