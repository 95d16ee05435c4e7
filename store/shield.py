"""Waiting for what must not be cancelled half-way.

Owns the places where a cancelled caller is made to wait for the outcome of a write that was handed over: one for
outcomes that are a future's, one for those that whoever does the write gives.
"""

import asyncio
from contextlib import suppress
from typing import Generic, TypeVar

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


class Reply(Generic[T]):
    """The outcome of what was handed over, on its way to the one caller who waits for it.

    The caller awaits the future itself: a shield around it would cost each append two more turns of the event loop.

    Attributes:
        future: What the caller waits for now; another takes its place where the caller is cancelled.
        done: Whether the outcome was given.
    """

    __slots__ = ("done", "future")

    def __init__(self, future: asyncio.Future[T]) -> None:
        self.future = future
        self.done = False

    def give(self, result: T) -> None:
        """Give the outcome, on the loop of the future."""
        self.done = True
        if not self.future.done():
            self.future.set_result(result)

    def fail(self, error: BaseException) -> None:
        """Give an error as the outcome, on the loop of the future."""
        self.done = True
        if not self.future.done():
            self.future.set_exception(error)

    async def outcome(self) -> T:
        """Wait for the outcome, also when the caller is cancelled meanwhile.

        Raises:
            asyncio.CancelledError: The caller was cancelled; raised only once the outcome stands.
        """
        try:
            return await self.future
        except asyncio.CancelledError:
            if self.done:
                if not self.future.cancelled():
                    self.future.exception()  # looked at, so that the loop does not report it as lost
                raise
            # What was awaited is cancelled; the outcome comes to another in its place.
            self.future = asyncio.get_running_loop().create_future()
            with suppress(Exception):
                await outcome(self.future)
            raise


async def _wait(future: asyncio.Future[T]) -> None:
    # The scope holds back cancellation by anyio's scopes, which would be delivered again at every turn of the loop.
    with anyio.CancelScope(shield=True):
        while not future.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([future])
