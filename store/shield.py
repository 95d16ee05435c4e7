"""Waiting for what must not be cancelled half-way.

Owns the one place where a cancelled caller is made to wait for the outcome of a write that was handed over.
"""

import asyncio
from contextlib import suppress
from typing import TypeVar

import anyio

T = TypeVar("T")


async def outcome(future: asyncio.Future[T]) -> T:
    """Wait until ``future`` is done, also when the caller is cancelled meanwhile, and return its result.

    Raises:
        asyncio.CancelledError: The caller was cancelled; raised only once the outcome stands.
    """
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        # The caller's cancellation, or the future's own, which its result tells below.
        if not future.done():
            await _wait(future)
        if not future.cancelled():
            future.exception()  # looked at, so that the loop does not report it as lost
        raise


async def _wait(future: asyncio.Future[T]) -> None:
    # The scope holds back cancellation by anyio's scopes, which would be delivered again at every turn of the loop.
    with anyio.CancelScope(shield=True):
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
