"""Runs the calls of one step in parallel and hands out each result as it comes, to be recorded at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from events.ids import CallKey
from generation.tools.execute import CallEnvironment, StartedCall, start_call
from generation.tools.output import CallResult
from generation.tools.policy import ToolCall, exclusive_refusals

_UNWINDING: Final = 0.25
"""Seconds that a cancelled function gets to end after the grace."""


class RunningBatch:
    """Calls that run together: ``async with run_batch(...) as batch: async for result in batch: ...``.

    Results come in the order in which calls end. A call that was cancelled gives none. Cancelling whoever iterates
    cancels no call: that is ``stop``'s, and leaving the block abandons what still runs.
    """

    def __init__(self, calls: Sequence[ToolCall], env: CallEnvironment) -> None:
        self._calls = calls
        self._env = env
        self._running: dict[CallKey, StartedCall] = {}
        self._ended: deque[StartedCall] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._refusals: list[CallResult] = []
        self._unstarted: list[CallKey] = []

    async def __aenter__(self) -> Self:
        self._refusals.extend(reversed(exclusive_refusals(self._calls)))
        if self._refusals:
            return self
        start = self._env.starter or start_call
        for call in self._calls:
            running = self._running[call.key] = start(call, self._env)
            running.on_done(self._note_end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for running in self._running.values():
            running.cancel()
            running.abandon()
        self._running.clear()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> CallResult:
        if self._refusals:
            return self._refusals.pop()
        while self._running:
            if not self._ended:
                await self._next_end()
            result = self._take(self._ended.popleft())
            if result is not None:
                return result
        raise StopAsyncIteration

    def ready(self) -> list[CallResult]:
        """Return the results of calls that have ended and were not taken, without waiting for others."""
        results = []
        while self._ended:
            result = self._take(self._ended.popleft())
            if result is not None:
                results.append(result)
        return results

    @property
    def unfinished(self) -> tuple[CallKey, ...]:
        """Calls whose end nobody has taken yet, in call order."""
        return tuple(self._running)

    @property
    def unstarted(self) -> tuple[CallKey, ...]:
        """Calls that were ended before anything of them ran: it is known that they had no effect."""
        return tuple(self._unstarted)

    def ended(self, call: CallKey) -> bool:
        """Whether a call's end was taken."""
        return call not in self._running

    async def stop(self, grace: float, *, cancel: bool = True) -> tuple[CallResult, ...]:
        """End the batch: wait up to ``grace`` seconds for the calls that run, then abandon them.

        Args:
            grace: Seconds.
            cancel: Ask the calls to end at once. Else they are told, may end by themselves within the grace with a
                result that counts, and are asked after it; those that wait to begin do not begin any more.

        Returns:
            The results that had come or came in time and were not taken, in the order in which calls ended. The calls
            of ``unfinished`` before, less those of these results and of ``unstarted``, have an unknown outcome.
        """
        results = list(reversed(self._refusals))
        self._refusals.clear()
        for running in self._running.values():
            if cancel or running.waits:
                running.cancel()
            else:
                running.tell()
        loop = asyncio.get_running_loop()
        until = loop.time() + grace
        while self._running:
            if not self._ended:
                await asyncio.wait({self._next_end()}, timeout=max(0.0, until - loop.time()))
            if not self._ended:
                break
            results += self.ready()
        if self._running:
            for running in self._running.values():
                running.cancel()
            # What was asked to end is given the moment that this takes; a function that goes on is abandoned.
            await asyncio.gather(*(running.wait(_UNWINDING) for running in self._running.values()))
            late = [self._take(running) for running in tuple(self._running.values())]
            results += [result for result in late if result is not None]
        return tuple(results)

    def _next_end(self) -> asyncio.Future[None]:
        """Return a future that is done when the next call ends; whoever waits for it is the only one."""
        self._waiter = asyncio.get_running_loop().create_future()
        return self._waiter

    def _note_end(self, ended: StartedCall) -> None:
        self._ended.append(ended)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take(self, ended: StartedCall) -> CallResult | None:
        self._running.pop(ended.call.key, None)
        result = ended.result()
        if result is None and ended.unstarted:
            self._unstarted.append(ended.call.key)
        return result


def run_batch(calls: Sequence[ToolCall], env: CallEnvironment) -> RunningBatch:
    """Return a batch that starts when its ``async with`` block is entered.

    If several calls are given and one of them is exclusive, nothing runs and each gets a refusal.

    Args:
        calls: Calls with different keys, in call order.
        env: What they share.
    """
    return RunningBatch(calls, env)
