"""Calls one function of a tool, async or sync, with its timeout, its cancellation, and an end where it does not end.

An async function is cancelled as asyncio does it. A sync function's thread cannot be: its ``ToolContext`` says that it
shall end, and whoever waits decides how long. After that it is abandoned: the thread goes on, what it gives is dropped
and logged. Which function is called, and what its value means, is ``generation.tools.execute``'s.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from anyio import CapacityLimiter, to_thread
from msgspec import Struct
from structlog.stdlib import BoundLogger

from generation.foreign import contained, original
from generation.tools.contract import CallCancelled
from generation.tools.reconcile import Outcome

_abandoned_work: Final[set[asyncio.Task[Any]]] = set()
"""Holds what nobody waits for any more until it ends: the event loop itself keeps weak references only."""


class Reading(Struct, frozen=True, kw_only=True):
    """How what becomes of a function is read: what it returned, what it raised, and (in words) what cut it."""

    value: Callable[[Any], Outcome]
    error: Callable[[BaseException], Outcome]
    cut: Callable[[str], Outcome]


class Ending:
    """Whether a call shall end. Who asks, asks on the event loop; who looks may be in a thread.

    A call is told first, and what it gives then still counts; once it is asked, nothing that it gives does.
    """

    __slots__ = ("_asked", "_event", "_told")

    def __init__(self) -> None:
        self._asked = self._told = False
        self._event: threading.Event | None = None

    def asked(self) -> bool:
        """Whether it shall end now."""
        return self._asked

    def told(self) -> bool:
        """Whether its function could know that it shall come to its end."""
        return self._told

    def tell(self) -> None:
        """Let the function know that it shall come to its end."""
        self._told = True
        if self._event is not None:
            self._event.set()

    def ask(self) -> None:
        """Have the call end."""
        self._asked = True
        self.tell()

    def event(self) -> threading.Event:
        """Return an event for a function that wants to know, made when one does: few do."""
        if self._event is None:
            self._event = threading.Event()
            if self._told:
                self._event.set()
        return self._event


class Invocation:
    """One call of a function, to be run once.

    Args:
        function: Sync or async.
        arguments: By name.
        reading: Makes an outcome of it; called where the function ran, because that may take long.
        ending: Asked whether the call shall end.
        timeout: Seconds that it may run; None for no limit. The time that it waits for a thread does not count.
        cleanup: Seconds that an async function gets to end after it was cancelled by its timeout.
        limiter: Bounds the threads of sync functions; None for the event loop's common limiter.
        log: Where to tell of a call that does not end.
        name: Of the task.
    """

    def __init__(
        self,
        function: Callable[..., object],
        arguments: Mapping[str, Any],
        reading: Reading,
        ending: Ending,
        *,
        timeout: float | None,
        cleanup: float,
        limiter: CapacityLimiter | None,
        log: Callable[[], BoundLogger],
        name: str,
    ) -> None:
        self._function = function
        self._arguments = arguments
        self._reading = reading
        self._ending = ending
        self._timeout = timeout
        self._cleanup = cleanup
        self._limiter = limiter
        self._log = log
        self._name = name
        self._is_async = False
        self._too_late = False
        self._loop = asyncio.get_running_loop()
        self._entered = False
        self._begun: asyncio.Future[None] | None = None
        self._in_thread = False
        self._work: asyncio.Task[Any] | None = None

    @property
    def begun(self) -> bool:
        """Whether the function was entered."""
        return self._entered

    @property
    def through(self) -> bool:
        """Whether the function has ended."""
        return self._work is not None and self._work.done()

    def cancel(self) -> None:
        """Have an async function end; a sync one is told by the flag."""
        if self._work is not None and not self._in_thread:
            self._work.cancel()

    def abandon(self) -> None:
        """Drop and log whatever the function still gives."""
        self._too_late = True
        if self._work is not None:
            self._let_go(self._work)

    async def run(self) -> Outcome | None:
        """Call the function; None where it was cancelled."""
        if self._ending.asked():
            return None
        is_async = self._is_async = _is_async(self._function)
        if is_async and self._timeout is None:
            return await self._run_here()
        work: asyncio.Task[Outcome] = asyncio.create_task(self._invoke(), name=self._name)
        self._work = work
        if not is_async:
            # The time that a sync function waits for a thread does not count.
            begun = self._begun = self._loop.create_future()
            both: set[asyncio.Future[Any]] = {work, begun}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({work}, timeout=self._timeout)
        if not work.done():
            return await self._time_out(work)
        error = CallCancelled() if work.cancelled() else work.exception()
        if error is None:
            return work.result()
        if self._ending.asked():
            return None
        if not isinstance(error, CallCancelled):
            return self._failed(error)
        return None if self._ending.told() else self._cut_from_within()

    async def _run_here(self) -> Outcome | None:
        """Run an async function within the caller's task, which is its own: no time runs out beside it."""
        self._work = asyncio.current_task()
        try:
            return await self._invoke()
        except (CallCancelled, asyncio.CancelledError) as error:
            if self._ending.asked() or (self._ending.told() and isinstance(error, CallCancelled)):
                return None
            return self._cut_from_within()

    def _cut_from_within(self) -> Outcome:
        return self._reading.cut("CancelledError: the tool was cancelled by something within itself")

    def _let_go(self, work: asyncio.Task[Any]) -> None:
        self._log().warning("tool_call_abandoned", in_thread=self._in_thread)
        _abandoned_work.add(work)
        work.add_done_callback(self._drop)
        work.cancel()

    def _drop(self, work: asyncio.Task[Any]) -> None:
        _abandoned_work.discard(work)
        if not work.cancelled() and work.exception() is None and work.result() is not None:
            self._log().warning("tool_result_dropped")

    async def _time_out(self, work: asyncio.Task[Outcome]) -> Outcome:
        thread = self._in_thread
        self._log().warning("tool_timed_out", timeout=self._timeout, in_thread=thread)
        self._too_late = True
        self._ending.ask()
        work.cancel()
        await asyncio.wait({work}, timeout=self._cleanup)
        if not work.done():
            self._let_go(work)
        rest = "It may still be running" if thread or not work.done() else "It was cancelled"
        return self._reading.cut(
            f"Timed out after {self._timeout:g} s. {rest}: check what it did before you call it again."
        )

    async def _invoke(self) -> Outcome:
        if self._is_async:
            self._begin()
            return await self._finish(self._function, self._arguments)
        self._in_thread = True
        try:
            outcome = await to_thread.run_sync(self._call_in_thread, abandon_on_cancel=True, limiter=self._limiter)
        finally:
            self._in_thread = False
        if not inspect.isawaitable(outcome):
            return outcome
        return await self._finish(lambda: outcome, {})

    async def _finish(self, function: Callable[..., object], arguments: Mapping[str, Any]) -> Outcome:
        """Await what an async function gives, and read it."""
        try:
            with contained():
                awaitable = function(**arguments)
                if not inspect.isawaitable(awaitable):
                    return self._reading.value(awaitable)
                if self._ending.asked():
                    _close(awaitable)
                    raise CallCancelled("the call was cancelled")
                return self._reading.value(await awaitable)
        except (CallCancelled, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - a tool's fault, also an exit, is the tool's result
            return self._failed(original(error))

    def _call_in_thread(self) -> Outcome | Awaitable[object]:
        """Call a sync function, in its thread."""
        # Before it looks: whoever asks it to end first, and then finds it not entered, knows that it never will be.
        self._entered = True
        if self._ending.asked():
            self._entered = False
            raise CallCancelled("the call was cancelled before it began")
        self._loop.call_soon_threadsafe(self._begin)
        try:
            with contained():
                value = self._function(**self._arguments)
                if not inspect.isawaitable(value):
                    return self._reading.value(value)
                if self._too_late:
                    _close(value)
                return value
        except (CallCancelled, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - a tool's fault, also an exit, is the tool's result
            return self._failed(original(error))
        finally:
            if self._too_late:
                self._log().warning("tool_result_dropped")

    def _begin(self) -> None:
        self._entered = True
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)

    def _failed(self, error: BaseException) -> Outcome:
        self._log().debug("tool_failed", exc_info=error)
        return self._reading.error(error)


def _is_async(function: Callable[..., object]) -> bool:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    call = getattr(function, "__call__", None)  # noqa: B004 - of an object whose calls are coroutines
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _close(awaitable: object) -> None:
    """End a coroutine that never begins, so that Python does not warn of it."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
