"""Runs one call of a local tool, from the model's text to a storable result.

Owns the task or thread of the call, its timeout, its cancellation, and what becomes of a function that does not end.
Which calls run together is ``generation.tools.batch``'s; recording results is the runner's.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from anyio import CapacityLimiter, to_thread
from structlog.stdlib import BoundLogger

from events.ids import ChatId, WorkerId
from generation.budget import UNKNOWN_LIMIT_BUDGET
from generation.tools.arguments import parse_arguments
from generation.tools.contract import CallCancelled, ToolContext
from generation.tools.output import Answer, CallResult, answer_of, error_answer, exception_answer
from generation.tools.policy import ToolCall
from generation.tools.registry import CallRefused, ToolSet
from store.failpoints import reach
from store.log import get_logger

_log: Final = get_logger(__name__)

_abandoned_work: Final[set[asyncio.Task[Answer]]] = set()
"""Holds what nobody waits for any more until it ends: the event loop itself keeps weak references only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnvironment:
    """What the calls of one attempt share.

    Attributes:
        chat: The chat. With ``epoch``, ``worker`` and ``attempt``: see ``ToolContext``.
        tools: The tools of the turn.
        now: The time in microseconds UTC, for the results.
        budget: Bytes that one result may take.
        cleanup: Seconds that an async function gets to end after it was cancelled by its timeout.
        limiter: Bounds the threads of sync functions; None for the event loop's common limiter.
    """

    chat: ChatId
    epoch: int
    worker: WorkerId
    attempt: int
    tools: ToolSet
    now: Callable[[], int]
    budget: int = UNKNOWN_LIMIT_BUDGET
    cleanup: float = 5.0
    limiter: CapacityLimiter | None = None


class RunningCall:
    """One call, running since it was made.

    An async function is cancelled as asyncio does it. A sync function's thread cannot be: its ``ToolContext`` says that
    it shall end, and whoever waits decides how long. After that the call is abandoned: the thread goes on, what it
    gives is dropped and logged.
    """

    def __init__(self, call: ToolCall, env: CallEnvironment) -> None:
        self.call = call
        self._env = env
        self._cancelled = False
        self._tell_cancelled: threading.Event | None = None
        self._abandoned = False
        self._too_late = False
        self._loop = asyncio.get_running_loop()
        self._entered = False
        self._begun: asyncio.Future[None] | None = None
        self._in_thread = False
        self._work: asyncio.Task[Answer] | None = None
        self._task = asyncio.create_task(self._supervise(), name=f"tool {call.name} {call.key}")

    @property
    def _log(self) -> BoundLogger:
        return _log.bind(chat=self._env.chat, call=self.call.key, tool=self.call.name)

    @property
    def done(self) -> bool:
        """Whether the call ended or was abandoned."""
        return self._task.done()

    @property
    def begun(self) -> bool:
        """Whether the function was entered. A call that ends without that had no effect."""
        return self._entered

    def on_done(self, callback: Callable[[], None]) -> None:
        """Have ``callback`` called by the event loop when the call has ended or was abandoned."""
        self._task.add_done_callback(lambda _: callback())

    def cancel(self) -> None:
        """Ask the call to end: an async function is cancelled, a sync one is told through its context."""
        if self.done or self._cancelled:
            return
        self._set_cancelled()
        if self._work is not None and not self._in_thread:
            self._work.cancel()

    async def wait(self, grace: float | None = None) -> CallResult | None:
        """Wait for the result, at most ``grace`` seconds (None: as long as it takes); then the call is abandoned.

        Returns:
            The result; None where there will be none: the call was cancelled or abandoned, and it is not known what it
            did.
        """
        if not self.done:
            await asyncio.wait({self._task}, timeout=grace)
        if not self.done and self._work is not None and self._work.done():
            await asyncio.wait({self._task})  # the function is through, its result is a turn of the loop away
        if not self.done:
            self.abandon()
        return self.result()

    def result(self) -> CallResult | None:
        """Return what ``wait`` returns, of a call that was waited for or is done; None of one that still runs."""
        if not self.done or self._task.cancelled():
            return None
        return self._task.result()

    def abandon(self) -> None:
        """Wait for the call no longer: it is asked to end, and whatever it still gives is dropped and logged."""
        if self.done or self._abandoned:
            return
        self._abandoned = True
        self._too_late = True
        self._set_cancelled()
        self._task.cancel()
        if self._work is not None:
            self._let_go(self._work)

    def _is_cancelled(self) -> bool:
        return self._cancelled

    def _set_cancelled(self) -> None:
        self._cancelled = True
        if self._tell_cancelled is not None:
            self._tell_cancelled.set()

    def _context(self) -> ToolContext:
        """Return what the function may know of its call."""
        told = self._tell_cancelled = threading.Event()
        if self._cancelled:
            told.set()
        env = self._env
        return ToolContext(
            chat=env.chat,
            call=self.call.key,
            epoch=env.epoch,
            worker=env.worker,
            attempt=env.attempt,
            _cancelled=told,
        )

    def _let_go(self, work: asyncio.Task[Answer]) -> None:
        self._log.warning("tool_call_abandoned", in_thread=self._in_thread)
        _abandoned_work.add(work)
        work.add_done_callback(self._drop)
        work.cancel()

    def _drop(self, work: asyncio.Task[Answer]) -> None:
        _abandoned_work.discard(work)
        if not work.cancelled() and work.exception() is None:
            self._log.warning("tool_result_dropped")

    async def _supervise(self) -> CallResult | None:
        started = self._env.now()
        try:
            tool = self._env.tools.find(self.call.name)
            function = tool.function
            if function is None:
                raise CallRefused(f"Tool {tool.name} is run by the client. Nothing was run.")
            arguments = parse_arguments(tool, self.call.arguments)
        except CallRefused as refusal:
            self._log.debug("tool_call_refused", exc_info=refusal.__cause__)
            answer: Answer | None = error_answer(str(refusal), self._env.budget)
        else:
            if tool.context is not None:
                arguments[tool.context] = self._context()
            answer = await self._run(function, arguments, tool.timeout)
            reach("tool.done")
        if answer is None:
            return None
        return CallResult(
            key=self.call.key,
            name=self.call.name,
            answer=answer,
            started_at=started,
            ended_at=max(started, self._env.now()),
        )

    async def _run(
        self, function: Callable[..., object], arguments: dict[str, Any], timeout: float | None
    ) -> Answer | None:
        if self._cancelled:
            return None
        work = self._work = asyncio.create_task(self._invoke(function, arguments), name=self._task.get_name())
        if not _is_async(function):
            # The time that a sync function waits for a thread does not count.
            begun = self._begun = self._loop.create_future()
            both: set[asyncio.Future[Any]] = {work, begun}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({work}, timeout=timeout)
        if not work.done():
            return await self._time_out(work, timeout)
        error = CallCancelled() if work.cancelled() else work.exception()
        if error is None:
            return work.result()
        if self._is_cancelled():
            return None
        if not isinstance(error, CallCancelled):
            return self._failed(error)
        return error_answer("CancelledError: the tool was cancelled by something within itself", self._env.budget)

    async def _time_out(self, work: asyncio.Task[Answer], timeout: float | None) -> Answer:
        thread = self._in_thread
        self._log.warning("tool_timed_out", timeout=timeout, in_thread=thread)
        self._too_late = True
        self._set_cancelled()
        work.cancel()
        await asyncio.wait({work}, timeout=self._env.cleanup)
        if not work.done():
            self._let_go(work)
        rest = "It may still be running" if thread or not work.done() else "It was cancelled"
        text = f"Timed out after {timeout:g} s. {rest}: check what it did before you call it again."
        return error_answer(text, self._env.budget)

    async def _invoke(self, function: Callable[..., object], arguments: dict[str, Any]) -> Answer:
        reach("tool.starting")
        if _is_async(function):
            self._begin()
            return await self._finish(function, arguments)
        self._in_thread = True
        try:
            outcome = await to_thread.run_sync(
                self._call_in_thread, function, arguments, abandon_on_cancel=True, limiter=self._env.limiter
            )
        finally:
            self._in_thread = False
        if isinstance(outcome, Answer):
            return outcome
        return await self._finish(lambda: outcome, {})

    async def _finish(self, function: Callable[..., object], arguments: dict[str, Any]) -> Answer:
        """Await what an async function gives, and turn it into an answer."""
        try:
            awaitable = function(**arguments)
            if not inspect.isawaitable(awaitable):
                return answer_of(awaitable, self._env.budget)
            if self._cancelled:
                _close(awaitable)
                raise CallCancelled("the call was cancelled")
            return answer_of(await awaitable, self._env.budget)
        except (CallCancelled, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a tool's fault, also an exit, is the tool's result
            return self._failed(error)

    def _call_in_thread(self, function: Callable[..., object], arguments: dict[str, Any]) -> Answer | Awaitable[object]:
        """Call a sync function, in its thread; its value is turned into an answer there, because that may take long."""
        if self._cancelled:
            raise CallCancelled("the call was cancelled before it began")
        self._loop.call_soon_threadsafe(self._begin)
        try:
            value = function(**arguments)
            if not inspect.isawaitable(value):
                return answer_of(value, self._env.budget)
            if self._too_late:
                _close(value)
            return value
        except (CallCancelled, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a tool's fault, also an exit, is the tool's result
            return self._failed(error)
        finally:
            if self._too_late:
                self._log.warning("tool_result_dropped")

    def _begin(self) -> None:
        self._entered = True
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)

    def _failed(self, error: BaseException) -> Answer:
        self._log.debug("tool_failed", exc_info=error)
        return exception_answer(error, self._env.budget)


async def run_call(call: ToolCall, env: CallEnvironment) -> CallResult | None:
    """Run one call to its end; a cancellation of the caller reaches the tool, and the call is abandoned after it.

    Returns:
        The result; None where the tool ended itself by a cancellation.
    """
    running = RunningCall(call, env)
    try:
        return await running.wait()
    except asyncio.CancelledError:
        running.cancel()
        running.abandon()
        raise


def _is_async(function: Callable[..., object]) -> bool:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    call = getattr(function, "__call__", None)  # noqa: B004 - of an object whose calls are coroutines
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _close(awaitable: object) -> None:
    """End a coroutine that never begins, so that Python does not warn of it."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()
