"""The tools effect: run a batch, record each result as it comes, and let the last one ride with the commit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable

from events.content import Content
from events.control import OpenCall
from events.ids import CallKey, message_of, part_of
from events.parts import ToolCallPart
from generation.actions.attempt import Attempt
from generation.budget import result_budget
from generation.cancellation import Cause
from generation.live import live_files
from generation.outcomes import ResultsCame, Stopped, ToolsEnded
from generation.parts import LiveResult
from generation.plans import Outcome
from generation.tools.arguments import same_arguments
from generation.tools.batch import RunningBatch, run_batch
from generation.tools.execute import CallEnvironment
from generation.tools.hooked import CallHooks
from generation.tools.output import CallResult
from generation.tools.policy import ToolCall, exclusive_refusals


async def run_tools(attempt: Attempt, record: Callable[[ResultsCame], Awaitable[None]]) -> Outcome:
    """Run the calls that this attempt started.

    Args:
        attempt: The attempt.
        record: Appends results of calls while others still run.

    Returns:
        The results that are not recorded yet: the last one, or on a cancellation those that came within the grace.
    """
    open_calls = attempt.state.control.indexes.open_calls
    started = {call.key for call in open_calls if call.runs}
    calls = [_tool_call(attempt, call) for call in open_calls]
    refusals = exclusive_refusals(calls)
    if refusals:
        # Refused as one, also where a crash has left some of the refusals recorded: the others must not run now.
        return ToolsEnded(results=tuple(result.part() for result in refusals if result.key in started))
    calls = [call for call in calls if call.key in started]
    async with run_batch(calls, _environment(attempt)) as batch:
        try:
            return await _collect(attempt, batch, record)
        except asyncio.CancelledError:
            outcome = await _stop(attempt, batch)
            if outcome is None:
                raise
            return outcome


def not_begun(attempt: Attempt) -> Outcome:
    """Return what an effect comes to that was started in the log, and was stopped before any of it ran."""
    if attempt.running.kind != "tools":
        return Stopped()
    calls = attempt.state.control.indexes.open_calls
    unstarted = tuple(call.key for call in calls if call.runs and not call.possibly_done)
    return ToolsEnded(results=(), whole=False, unstarted=unstarted)


async def _collect(attempt: Attempt, batch: RunningBatch, record: Callable[[ResultsCame], Awaitable[None]]) -> Outcome:
    shown = _Shown(attempt, batch)
    async for first in batch:
        # What ended together is recorded together: a step may have thousands of calls.
        results = (first, *batch.ready())
        shown.take(results)
        parts = tuple(result.part() for result in results)
        if fault := next((result.fault for result in results if result.fault is not None), None):
            left = len(batch.unfinished)
            late = await batch.stop(attempt.runtime.settings.grace)
            parts += tuple(result.part() for result in late)
            return ToolsEnded(results=parts, whole=len(late) == left, error=fault, unstarted=batch.unstarted)
        if not batch.unfinished:
            return ToolsEnded(results=parts)
        await _to_the_end(record(ResultsCame(results=parts)))
    return ToolsEnded(results=())


async def _to_the_end(recording: Awaitable[None]) -> None:
    """Record although the effect may be cancelled meanwhile: a result that came must not be lost."""
    task = asyncio.ensure_future(recording)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _stop(attempt: Attempt, batch: RunningBatch) -> Outcome | None:
    """End the batch for the cause given; None where nothing may be written."""
    grace = attempt.runtime.settings.grace
    match attempt.scope.cause:
        case Cause.USER_INTERRUPT | Cause.SHUTDOWN:
            results = await batch.stop(grace, cancel=False)
            parts = tuple(result.part() for result in results)
            return ToolsEnded(results=parts, whole=False, unstarted=batch.unstarted)
        case Cause.HISTORY_CHANGED:
            # What replaces this work starts nothing until the old tools have ended or had their grace.
            await batch.stop(grace)
            return None
        case _:
            return None


class _Shown:
    """Shows results to those who watch, in the order of the calls: one that came early waits for those before it."""

    def __init__(self, attempt: Attempt, batch: RunningBatch) -> None:
        self._attempt = attempt
        self._batch = batch
        self._calls = deque(batch.unfinished)
        self._held: dict[CallKey, CallResult] = {}

    def take(self, results: Iterable[CallResult]) -> None:
        """Take results that came, and show those that no call before them keeps back any more."""
        self._held |= {result.key: result for result in results}
        while self._calls and self._batch.ended(self._calls[0]):
            result = self._held.pop(self._calls.popleft(), None)
            if result is not None:
                self._attempt.runtime.parts.add(self._attempt.episode, _live(result))


def _live(result: CallResult) -> LiveResult:
    answer = result.answer
    return LiveResult(
        name=result.name,
        output=answer.output,
        is_error=answer.is_error,
        call=result.key,
        media=live_files(answer.media),
        attachments=live_files(answer.attachments),
        ended_at=result.ended_at,
    )


def _environment(attempt: Attempt) -> CallEnvironment:
    runtime, effect = attempt.runtime, attempt.effect

    def begun(call: ToolCall) -> None:
        runtime.observer.tool_begun(effect, call, at=runtime.now())

    def ended(call: ToolCall, result: CallResult | None) -> None:
        runtime.observer.tool_ended(effect, call, result, at=runtime.now())

    model = attempt.policy.model
    return CallEnvironment(
        chat=attempt.chat,
        epoch=attempt.state.control.epoch,
        worker=runtime.worker,
        attempt=attempt.running.attempt,
        tools=attempt.declared.tool_set,
        now=runtime.now,
        budget=result_budget(model.context_limit if model is not None else None),
        cleanup=runtime.settings.grace,
        hooks=CallHooks(runtime.hooks, attempt.chat) if runtime.hooks.at("pre_tool_use", "post_tool_use") else None,
        begun=begun if runtime.observed else None,
        ended=ended if runtime.observed else None,
        starter=runtime.call_starter,
    )


def _tool_call(attempt: Attempt, call: OpenCall) -> ToolCall:
    transcript = attempt.state.need_transcript("run tools")
    position = transcript.messages.find(message_of(call.key))
    part = transcript.messages[position].message.parts[part_of(call.key)] if position is not None else None
    arguments, rewritten = _in_force(
        _said(part.arguments) if isinstance(part, ToolCallPart) else None, transcript.arguments.get(call.key)
    )
    return ToolCall(
        key=call.key,
        name=call.name,
        arguments=arguments,
        exclusive=call.exclusive,
        possibly_done=call.possibly_done,
        reconcile=call.reconcile,
        approved=call.approved,
        rewritten=rewritten,
    )


def _in_force(arguments: str | None, approved: Content | None) -> tuple[str | None, str | None]:
    """Return the model's arguments and those that were approved in their place; two None where they are gone.

    Those of the model do not stand in for others that were approved and are gone since.
    """
    if approved is None:
        return arguments, None
    other = _said(approved)
    if other is None:
        return None, None
    return arguments, None if arguments is not None and same_arguments(arguments, other) else other


def _said(content: Content) -> str | None:
    return content.text if content.available else None
