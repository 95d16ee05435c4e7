"""Handlers of workers: holding a chat, attempts and their outcomes, the end of a turn."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from chatstate import commands as c
from chatstate.cancellations import anchored, closed
from chatstate.handlers.context import Context
from chatstate.handlers.user import boundary
from events import vocabulary as v
from events.control import OpenCall, lost_calls, refused_as_one, repeated_calls
from events.ids import CallKey, MessageId, message_id
from events.indexes import find_call
from events.messages import Message
from events.parts import ToolCallPart
from events.records import Answer
from events.transcript import Messages, TranscriptMessage

TAKEOVER_LIMIT: Final = 3
"""The takeover on one history at which the turn fails (worker_lost) instead of going on."""


def acquire(ctx: Context, command: c.Acquire) -> v.Acquired:
    """Hold a free chat, or take one over from a dead holder."""
    control = ctx.control
    if control.not_before is not None and ctx.now < control.not_before:
        ctx.not_allowed("a retry is scheduled and its time has not come")
    takeover = control.holder is not None
    return v.Acquired(
        worker=command.worker,
        epoch=control.epoch + 1,
        release=command.release,
        takeover=takeover,
        unknown=_lost(control.indexes.open_calls) if takeover else (),
        again=_again(control.indexes.open_calls) if takeover else (),
    )


def release(ctx: Context, command: c.Release) -> v.Released:
    """Let the chat go."""
    ctx.check_fence(command.fence)
    calls = ctx.control.indexes.open_calls
    return v.Released(reason=command.reason, unknown=_lost(calls), again=_again(calls), report=command.report)


def record_policy(ctx: Context, command: c.RecordPolicy) -> v.PolicyRecorded:
    """Record the policy."""
    ctx.check_fence(command.fence)
    return v.PolicyRecorded(digest=command.digest, policy=command.policy)


def start_attempt(ctx: Context, command: c.StartAttempt) -> v.AttemptStarted:
    """Start an effect."""
    ctx.check_fence(command.fence)
    open_calls = ctx.control.indexes.open_calls
    if command.kind != "tools":
        # Its outcome could not enter history.
        ctx.check_none_open()
    elif not command.calls and not any(call.recorded for call in open_calls):
        ctx.not_allowed("there is no call to run and no result to commit")
    if command.calls:
        # What is refused as one starts nothing: a client's call, and one that waits for approval, may be among it.
        one = refused_as_one(open_calls)
        startable = {call.key for call in open_calls if not call.recorded and (call.may_run or one)}
        if stray := [call for call in command.calls if call not in startable]:
            ctx.not_allowed(f"calls {', '.join(stray)} are not open, have a result, or wait for approval")
    return v.AttemptStarted(
        attempt=ctx.control.attempt + 1,
        kind=command.kind,
        decision=command.decision,
        calls=command.calls,
        cut=command.cut,
    )


def record_tool_result(ctx: Context, command: c.RecordToolResult) -> v.ToolResultRecorded:
    """Keep a result beside history."""
    ctx.check_fence(command.fence)
    calls = ctx.control.indexes.open_calls
    place = find_call(calls, command.result.call)
    if place is None or not calls[place].runs:
        ctx.not_allowed(f"call {command.result.call} is not running")
    return v.ToolResultRecorded(attempt=ctx.control.attempt, result=command.result)


def commit_step(ctx: Context, command: c.CommitStep) -> v.StepCommitted:
    """Let an assistant message, or a batch's results in call order, into history."""
    ctx.check_fence(command.fence)
    attempt = ctx.control.attempt
    if command.message is not None:
        ctx.check_attempt_kind("generate")
        ctx.check_answer(command.message)
        ctx.check_none_open()
        own = anchored(command.message, message_id(ctx.version, 0))
        if any(each.role != "user" or each.visibility != "model" for each in command.more):
            ctx.not_allowed("only model-only user messages may follow an answer")
        if command.more and any(isinstance(part, ToolCallPart) and part.runner != "provider" for part in own.parts):
            ctx.not_allowed("nothing may follow an answer whose calls are open")
        return v.StepCommitted(attempt=attempt, added=(own, *command.more), report=command.report)
    ctx.check_attempt_kind("tools")
    ctx.check_none_running()
    results = tuple(Answer(call=call.key) for call in ctx.control.indexes.open_calls if call.recorded)
    if not results:
        ctx.not_allowed("no result is recorded")
    return v.StepCommitted(attempt=attempt, answers=results, report=command.report)


def commit_compaction(ctx: Context, command: c.CommitCompaction) -> v.CompactionCommitted:
    """Write the boundary, and the trailing unanswered user messages again."""
    ctx.check_fence(command.fence)
    ctx.check_attempt_kind("compact")
    ctx.check_none_open()
    messages = ctx.state.need_transcript(ctx.trigger).messages
    trio = boundary("chat_summarized", message_id(ctx.version, 1), command.summary, command.details)
    again = tuple(
        Message(role="user", visibility="model", parts=item.message.parts, origin=_first_id(ctx, item))
        for item in trailing_users(messages)
    )
    return v.CompactionCommitted(
        attempt=ctx.control.attempt,
        manual=command.manual,
        context_tokens=command.context_tokens,
        added=(*trio, *again),
        report=command.report,
    )


def persist_context(ctx: Context, command: c.PersistContext) -> v.ContextPersisted:
    """Let the collected context into history."""
    ctx.check_fence(command.fence)
    ctx.check_attempt_kind("context")
    mark = command.message.context
    if mark is None or command.message.role != "system":
        ctx.not_allowed("a context is a system message with a context mark")
    return v.ContextPersisted(
        attempt=ctx.control.attempt, source=mark.source, revision=mark.revision, added=(command.message,)
    )


def schedule_retry(ctx: Context, command: c.ScheduleRetry) -> v.RetryScheduled:
    """Try again later."""
    ctx.check_fence(command.fence)
    ctx.check_none_running()
    return v.RetryScheduled(
        attempt=ctx.control.attempt,
        delay_us=command.delay_us,
        not_before=ctx.now + command.delay_us,
        error=command.error,
        report=command.report,
    )


def finish_turn(ctx: Context, command: c.FinishTurn) -> v.TurnFinished:
    """End the turn; the queue's head opens the next."""
    ctx.check_fence(command.fence)
    return v.TurnFinished(
        cause=command.cause,
        decision=command.decision,
        report=command.report,
        answers=ctx.answers(),
        promoted=ctx.head,
    )


def fail_turn(ctx: Context, command: c.FailTurn) -> v.TurnFailed:
    """End the turn with an error. Whatever resumes the chat answers its calls; those that still run are lost.

    Of an answer that the failure cut, what had come is kept as after an interruption: its calls never run.
    """
    ctx.check_fence(command.fence)
    running = ctx.control.running
    kept: tuple[Message, ...] = ()
    if command.message is not None:
        ctx.check_attempt_kind("generate")
        ctx.check_answer(command.message)
        ctx.check_none_open()
        kept = closed(replace(command.message, interrupted=True), ctx.version, 0)
    return v.TurnFailed(
        error=command.error,
        attempt=running.attempt if running is not None else None,
        decision=command.decision,
        report=command.report,
        added=kept,
        unknown=_lost(ctx.control.indexes.open_calls),
        again=_again(ctx.control.indexes.open_calls),
    )


def finish_interruption(ctx: Context, command: c.FinishInterruption) -> v.InterruptionFinished:
    """End an interrupted turn and keep what there is."""
    ctx.check_fence(command.fence)
    given = ctx.answers()
    kept: tuple[Message, ...] = ()
    if command.message is not None:
        ctx.check_attempt_kind("generate")
        ctx.check_answer(command.message)
        kept = closed(command.message, ctx.version, len(given))
    running = ctx.control.running
    return v.InterruptionFinished(
        attempt=running.attempt if running is not None else None,
        report=command.report,
        answers=given,
        added=kept,
        promoted=ctx.head,
    )


def _first_id(ctx: Context, item: TranscriptMessage) -> MessageId:
    # A copy of a copy names the message itself, so that erasing that one finds all. What a fork imported names as its
    # origin a message of another chat.
    own = item.message.origin if item.version > ctx.control.imported_to else None
    return own or item.id


def trailing_users(messages: Messages) -> list[TranscriptMessage]:
    """Return the unanswered user messages at the end of what a prompt reads, in order."""
    trailing = []
    for at in range(len(messages) - 1, -1, -1):
        item = messages[at]
        message = item.message
        if message.boundary is not None:
            break
        if message.role == "system" or message.visibility == "user":
            continue
        if message.role != "user":
            break
        trailing.append(item)
    return trailing[::-1]


def _lost(calls: tuple[OpenCall, ...]) -> tuple[CallKey, ...]:
    return tuple(call.key for call in lost_calls(calls))


def _again(calls: tuple[OpenCall, ...]) -> tuple[CallKey, ...]:
    return tuple(call.key for call in repeated_calls(calls))
