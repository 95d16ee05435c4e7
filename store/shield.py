"""Waiting for what must not be cancelled half-way.

Owns the one place where a cancelled caller is made to wait for the outcome of a write that was handed over.
"""

import asyncio
from typing import TypeVar

import anyio

T = TypeVar("T")


async def outcome(future: asyncio.Future[T]) -> T:
    """Wait until ``future`` is done, also when the caller is cancelled meanwhile, and return its result.

    Raises:
        asyncio.CancelledError: The caller was cancelled; raised only once the outcome stands.
    """
    cancelled: asyncio.CancelledError | None = None
    # The scope holds back cancellation by anyio's scopes, which would be delivered again at every turn of the loop.
    with anyio.CancelScope(shield=True):
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        if not future.cancelled():
            future.exception()  # looked at, so that the loop does not report it as lost
        raise cancelled
    return future.result()
