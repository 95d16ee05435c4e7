"""Trying a call again within this process, for calls beside the turns: each has a budget of its own.

The turns' own retries are durable and the runner's. Here nothing is recorded: when the process goes, so does the call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from generation.error_texts import given_up
from generation.errors import ClassifiedError, ProviderError
from generation.foreign import contained
from generation.providers.sdk_errors import classified
from generation.retry import SECOND_US, effective_delay_us

MAX_ATTEMPTS: Final = 25

T = TypeVar("T")


class Again(NamedTuple):
    """What is told before the wait for another attempt: the one that failed (from 1), how, and the wait."""

    attempt: int
    failure: ProviderError
    error: ClassifiedError
    delay_us: int


async def retry_call(
    call: Callable[[], Awaitable[T]],
    provider: str,
    *,
    unit_us: int = SECOND_US,
    told: Callable[[Again], object] | None = None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> T:
    """Call until it gives something, fails for good, or has failed 25 times.

    A cancellation that nobody asked this task for is the provider's, and a fault of the transport.

    Args:
        call: Makes one attempt.
        provider: The provider's name, for errors.
        unit_us: Microseconds that stand for one second of the table of waits.
        told: Called before each wait.
        sleep: Waits so many seconds.

    Raises:
        ProviderError: It failed for good; after the last attempt the message says how many there were.
        asyncio.CancelledError: The task was cancelled, before an attempt, in it, after it or while it waited.
    """
    attempt = 0
    while True:
        attempt += 1
        see_cancellation()
        try:
            async with classified(provider):
                with contained():
                    return await call()
        except ProviderError as raised:
            failure = raised
        see_cancellation()
        error = failure.error
        if not error.retryable:
            raise failure
        if attempt >= MAX_ATTEMPTS:
            raise ProviderError(replace(error, message=given_up(error.message, attempt))) from failure
        delay = effective_delay_us(attempt - 1, error.retry_after_us, unit_us)
        if told is not None:
            told(Again(attempt, failure, error, delay))
        await sleep(delay / 1_000_000)


def see_cancellation() -> None:
    """See that nobody cancelled the running task, whether or not something in it took that for its own matter.

    Raises:
        asyncio.CancelledError: Somebody did.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
