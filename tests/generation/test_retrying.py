"""Calls beside the turns are tried again within the process: how often, after how long, and until who says stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from generation.errors import ClassifiedError, ProviderError
from generation.retrying import MAX_ATTEMPTS, Again, retry_call

BUSY = ClassifiedError(kind="overloaded", message="Busy.", provider="p", retryable=True, status_code=529)


class Calls:
    """Calls that fail in turn by what is given, and then answer."""

    def __init__(self, *failures: BaseException) -> None:
        self.failures = list(failures)
        self.made = 0
        self.waits: list[float] = []
        self.told: list[Again] = []

    async def __call__(self) -> str:
        self.made += 1
        if self.failures:
            raise self.failures.pop(0)
        return "done"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def run(self, sleep: Callable[[float], Awaitable[None]] | None = None) -> str:
        return await retry_call(self, "p", told=self.told.append, sleep=sleep or self.sleep)


async def test_waits_grow_to_a_minute_and_each_is_told_before_it() -> None:
    calls = Calls(*(ProviderError(BUSY) for _ in range(8)))
    assert await calls.run() == "done"
    assert calls.waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [(again.attempt, again.delay_us) for again in calls.told[:3]] == [
        (1, 1_000_000),
        (2, 2_000_000),
        (3, 4_000_000),
    ]
    assert calls.told[0].error == BUSY
    assert calls.told[0].failure.error == BUSY


async def test_what_the_service_asks_to_wait_counts_where_it_is_longer_and_may_be_over_the_cap() -> None:
    asked = [
        ClassifiedError(kind="rate_limit", message="m", retryable=True, retry_after_us=us) for us in (500, 90_000_000)
    ]
    calls = Calls(*map(ProviderError, asked))
    await calls.run()
    assert calls.waits == [1, 90]


async def test_25_attempts_are_made_and_the_last_error_says_so() -> None:
    calls = Calls(*(ProviderError(BUSY) for _ in range(100)))
    with pytest.raises(ProviderError, match=r"Busy\. Given up after 25 attempts"):
        await calls.run()
    assert (calls.made, len(calls.waits), MAX_ATTEMPTS) == (25, 24, 25)


@pytest.mark.parametrize(("status", "retried"), [(401, False), (403, False), (404, False), (429, True), (503, True)])
async def test_only_what_may_pass_is_tried_again(status: int, *, retried: bool) -> None:
    error = ClassifiedError(kind="generic", message="m", retryable=retried, status_code=status)
    calls = Calls(ProviderError(error))
    if retried:
        assert await calls.run() == "done"
    else:
        with pytest.raises(ProviderError):
            await calls.run()
    assert calls.made == 1 + retried


async def test_a_cancellation_by_the_provider_is_a_fault_of_the_transport_and_tried_again() -> None:
    calls = Calls(asyncio.CancelledError())
    assert await calls.run() == "done"
    assert calls.told[0].error.retryable


async def test_a_task_that_is_cancelled_makes_no_attempt() -> None:
    calls = Calls()

    async def work() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)  # somebody took the cancellation for their own matter
        return await calls.run()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(work())
    assert calls.made == 0


async def test_a_cancellation_is_seen_after_an_attempt_that_swallowed_it() -> None:
    calls = Calls()
    begun = asyncio.Event()

    async def swallowing() -> str:
        calls.made += 1
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ProviderError(BUSY) from None
        return "never"

    task = asyncio.create_task(retry_call(swallowing, "p", told=calls.told.append, sleep=calls.sleep))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (calls.made, calls.told) == (1, [])


async def test_a_cancellation_ends_the_wait_with_what_was_said() -> None:
    calls = Calls(ProviderError(BUSY))
    waiting = asyncio.Event()

    async def wait(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(calls.run(wait))
    await waiting.wait()
    task.cancel("shutdown")
    with pytest.raises(asyncio.CancelledError, match="shutdown"):
        await task
    assert calls.made == 1
