"""Runs one call of a local tool, from the model's text to a storable result.

A call that a holder which is gone may have done already is asked about before anything of it runs. Calling a function
is ``generation.tools.invoke``'s, which calls run together ``generation.tools.batch``'s; recording results is the
runner's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from anyio import CapacityLimiter
from msgspec import Struct
from structlog.stdlib import BoundLogger

from events.ids import ChatId, WorkerId
from events.reasons import REASON_TEXTS, Reason
from generation.budget import UNKNOWN_LIMIT_BUDGET
from generation.tools.arguments import parse_arguments
from generation.tools.contract import ToolContext
from generation.tools.hooked import CallHooks
from generation.tools.invoke import Ending, Invocation, Reading
from generation.tools.output import Answer, CallResult, answer_of, error_answer, exception_answer
from generation.tools.policy import ToolCall
from generation.tools.reconcile import NOT_HAPPENED, NOT_KNOWN, Outcome, Verdict, verdict_of
from generation.tools.registry import CallRefused, ToolSet
from store.failpoints import reach
from store.log import get_logger

_log: Final = get_logger(__name__)

_LOST: Final = Answer(REASON_TEXTS[Reason.WORKER_LOST], is_error=True)
"""What is shown of a call of which nobody knows whether it happened."""


class StartedCall(Protocol):
    """A call that was started, as a batch deals with it; what its methods say stands at :class:`RunningCall`."""

    call: ToolCall

    @property
    def waits(self) -> bool:
        """Whether nothing of it was entered yet."""
        ...

    @property
    def unstarted(self) -> bool:
        """Whether it is known that it had no effect."""
        ...

    def on_done(self, callback: Callable[[StartedCall], None]) -> None:
        """Have ``callback`` called by the event loop when the call has ended or was abandoned."""
        ...

    def tell(self) -> None:
        """Let the call know that it shall come to its end."""
        ...

    def cancel(self) -> None:
        """Ask the call to end."""
        ...

    async def wait(self, grace: float | None = None) -> CallResult | None:
        """Wait for the result, at most ``grace`` seconds; then the call is abandoned."""
        ...

    def result(self) -> CallResult | None:
        """Return the result of a call that is done; None where there is none."""
        ...

    def abandon(self) -> None:
        """Wait for the call no longer."""
        ...


CallStarter: TypeAlias = Callable[[ToolCall, "CallEnvironment"], StartedCall]
"""Starts a call, within a running event loop."""


_NOT_ASKED: Final = ", and nobody was asked. Nothing was run. Call it again."


class CallEnvironment(Struct, frozen=True, kw_only=True):
    """What the calls of one attempt share.

    Attributes:
        chat: The chat. With ``epoch``, ``worker`` and ``attempt``: see ``ToolContext``.
        tools: The tools of the turn.
        now: The time in microseconds UTC, for the results.
        budget: Bytes that one result may take.
        cleanup: Seconds that an async function gets to end after it was cancelled by its timeout.
        limiter: Bounds the threads of sync functions; None for the event loop's common limiter.
        hooks: Are asked before a call runs and after it ran; None where there are none.
        begun, ended: Told of each call as it begins, within its task, and as it ends; None for nobody.
        starter: Starts each call of a batch; None for :func:`start_call`.
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
    hooks: CallHooks | None = None
    begun: Callable[[ToolCall], None] | None = None
    ended: Callable[[ToolCall, CallResult | None], None] | None = None
    starter: CallStarter | None = None


class RunningCall:
    """One call, running since it was made."""

    def __init__(self, call: ToolCall, env: CallEnvironment) -> None:
        self.call = call
        self._env = env
        self._ending = Ending()
        self._abandoned = False
        self._question: Invocation | None = None
        self._function: Invocation | None = None
        self._came: CallResult | None = None
        self._possibly_done = call.possibly_done
        self._name = f"tool {call.name} {call.key}"
        self._task = asyncio.create_task(self._supervise(), name=self._name)

    def _log(self) -> BoundLogger:
        return _log.bind(chat=self._env.chat, call=self.call.key, tool=self.call.name)

    def _context(self) -> ToolContext:
        """Return what a function may know of its call."""
        env = self._env
        return ToolContext(
            chat=env.chat,
            call=self.call.key,
            epoch=env.epoch,
            worker=env.worker,
            attempt=env.attempt,
            _cancelled=self._ending.event(),
        )

    @property
    def done(self) -> bool:
        """Whether the call ended or was abandoned."""
        return self._task.done()

    @property
    def begun(self) -> bool:
        """Whether the tool's function was entered. A call that ends without that had no effect here."""
        return self._function is not None and self._function.begun

    @property
    def waits(self) -> bool:
        """Whether nothing of it was entered yet: hooks are asked whether it may run, or it has no thread."""
        return not self.begun and self._question is None

    @property
    def unstarted(self) -> bool:
        """Whether it is known that it had no effect, here or with a holder that is gone. Ask once it shall end."""
        return not self.begun and not self._possibly_done

    @property
    def _work(self) -> Invocation | None:
        """What runs now: the question whether it happened, then the function."""
        return self._function or self._question

    def on_done(self, callback: Callable[[StartedCall], None]) -> None:
        """Have ``callback`` called by the event loop when the call has ended or was abandoned."""
        self._task.add_done_callback(lambda _: callback(self))

    def tell(self) -> None:
        """Let the function know, by its context, that it shall come to its end; what it gives still counts."""
        self._ending.tell()

    def cancel(self) -> None:
        """Ask the call to end: an async function is cancelled, a sync one is told through its context.

        One that hooks are still asked about ends at once, and never begins.
        """
        if self.done or self._ending.asked():
            return
        self._ending.ask()
        if self._work is not None:
            self._work.cancel()
        else:
            self._task.cancel()

    async def wait(self, grace: float | None = None) -> CallResult | None:
        """Wait for the result, at most ``grace`` seconds (None: as long as it takes); then the call is abandoned.

        Returns:
            The result, also where hooks have not answered yet; None where there will be none: the call was cancelled or
            abandoned, and it is not known what it did.
        """
        if not self.done:
            await asyncio.wait({self._task}, timeout=grace)
        if not self.done and self._work is not None and self._work.through and self._env.hooks is None:
            await asyncio.wait({self._task})  # the function is through, its result is a turn of the loop away
        if not self.done:
            self.abandon()
        return self.result()

    def result(self) -> CallResult | None:
        """Return what ``wait`` returns, of a call that was waited for or is done; None of one that still runs."""
        if not self.done or self._task.cancelled():
            return self._came  # what is only to be told of yet is known, and stands
        return self._task.result()

    def abandon(self) -> None:
        """Wait for the call no longer: it is asked to end, and whatever it still gives is dropped and logged."""
        if self.done or self._abandoned:
            return
        self._abandoned = True
        self._ending.ask()
        self._task.cancel()
        if self._work is not None and self._came is None:
            self._work.abandon()

    async def _supervise(self) -> CallResult | None:
        """Run it, and tell of its beginning and its end."""
        result = None
        if self._env.begun is not None:
            self._env.begun(self.call)
        try:
            result = await self._result()
        finally:
            if self._env.ended is not None:
                self._env.ended(self.call, result)
        return result

    async def _result(self) -> CallResult | None:
        """Ask where it may be done already, run it where it is not."""
        started = self._env.now()
        asked = self.call.possibly_done and self.call.reconcile
        outcome: Outcome | None = await self._ask() if asked else NOT_HAPPENED
        context: str | None = None
        if outcome is NOT_HAPPENED:
            if asked:
                self._question, self._possibly_done = None, False
            if (hooks := self._env.hooks) is not None:
                self.call, context, refused = await hooks.before(self.call)
                if refused is not None:
                    return refused
            outcome = await self._run()
        if outcome is None:
            return None
        unknown = isinstance(outcome, Verdict)
        result = CallResult(
            key=self.call.key,
            name=self.call.name,
            answer=_LOST if isinstance(outcome, Verdict) else outcome,
            reason=Reason.WORKER_LOST if unknown else None,
            started_at=None if unknown else started,
            ended_at=None if unknown else max(started, self._env.now()),
            rewritten=self.call.rewritten,
            context=context,
        )
        if self._env.hooks is None or unknown:
            return result
        self._came = result
        return await self._env.hooks.after(result)

    async def _ask(self) -> Outcome | None:
        """Ask the tool whether the call happened; what cannot be asked is not known."""
        budget = self._env.budget
        try:
            tool = self._env.tools.find(self.call.name)
            arguments = parse_arguments(tool, self.call.in_force)
        except CallRefused as refusal:
            self._log().warning("call_not_reconciled", reason=str(refusal))
            return NOT_KNOWN
        if tool.reconcile is None:
            self._log().warning("call_not_reconciled", reason="the tool cannot be asked any more")
            return NOT_KNOWN
        reading = Reading(
            value=lambda value: verdict_of(value, budget), error=lambda _: NOT_KNOWN, cut=lambda _: NOT_KNOWN
        )
        ask = partial(tool.reconcile, self._context(), arguments)
        question = self._question = self._invocation(ask, {}, reading, tool.timeout)
        outcome = await question.run()
        if outcome is not None:
            said = outcome.value if isinstance(outcome, Verdict) else "happened"
            self._log().info("call_reconciled", said=said)
        return outcome

    async def _run(self) -> Outcome | None:
        """Run the tool's function."""
        budget = self._env.budget
        try:
            tool = self._env.tools.find(self.call.name)
            function, arguments = tool.function, parse_arguments(tool, self.call.in_force)
            # A call that nobody was asked about, since its arguments were not fit, may have got others since.
            if function is None:
                raise CallRefused(f"Tool {tool.name} is run by the client{_NOT_ASKED}")
            if tool.needs_approval and not self.call.approved:
                raise CallRefused(f"Tool {tool.name} needs approval{_NOT_ASKED}")
        except CallRefused as refusal:
            self._log().debug("tool_call_refused", exc_info=refusal.__cause__)
            return error_answer(str(refusal), budget)
        if tool.context is not None:
            arguments[tool.context] = self._context()
        reading = Reading(
            value=lambda value: answer_of(value, budget),
            error=lambda error: exception_answer(error, budget),
            cut=lambda text: error_answer(text, budget),
        )
        reach("tool.starting")
        running = self._function = self._invocation(function, arguments, reading, tool.timeout)
        answer = await running.run()
        reach("tool.done")
        return answer

    def _invocation(
        self, function: Callable[..., object], arguments: Mapping[str, Any], reading: Reading, timeout: float | None
    ) -> Invocation:
        return Invocation(
            function,
            arguments,
            reading,
            self._ending,
            timeout=timeout,
            cleanup=self._env.cleanup,
            limiter=self._env.limiter,
            log=self._log,
            name=self._name,
        )


def start_call(call: ToolCall, env: CallEnvironment) -> StartedCall:
    """Start a call of a local tool: its function is run here."""
    return RunningCall(call, env)


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
