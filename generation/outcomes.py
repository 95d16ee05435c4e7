"""Outcomes of effects as commands: what each records in a running chat, and what of it an interruption keeps. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from chatstate import commands as c
from chatstate.cancellations import answers
from events.content import Content
from events.control import OpenCall
from events.ids import CallKey, MessageId, message_id
from events.levels import known_at
from events.messages import Message, Step
from events.parts import HookContextPart, Part, ToolResultPart
from events.reasons import Reason
from events.records import MODEL_KINDS, AttemptReport, ErrorInfo, RequestDigests
from generation.decide import empty_answer
from generation.error_texts import given_up
from generation.errors import ClassifiedError
from generation.older import result_at
from generation.partials import Leftover
from generation.retry import SECOND_US, retry_delay_us
from generation.summary import Source
from store.append import PlanRun


class Answered(Struct, frozen=True, kw_only=True):
    """A model's answer: whole, or (``interrupted``) what had come of it.

    ``parts`` gives the parts for the id that the message will have: a provider's own results name their calls by it.
    ``flushed``: the store may hold chunks of it, to be dropped with the commit. ``more``: what hooks say after it, by
    which the turn goes on. ``error``: why the turn fails with it, in the same append.
    """

    parts: Callable[[MessageId], tuple[Part, ...]]
    step: Step
    request: RequestDigests
    interrupted: bool = False
    flushed: bool = True
    more: tuple[Message, ...] = ()
    error: ClassifiedError | None = None

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Commit the step; an answer without parts ends the turn and leaves no empty message."""
        message = self._message(message_id(run.state.control.version + 1, 0))
        if message is not None:
            # A chat of an older level cannot keep what the hook said, nor that it said it: it would say it for ever.
            more = self.more if known_at(run.level, HookContextPart) else ()
            run.do(c.CommitStep(fence=fence, message=message, report=self._report(message), more=more))
            _fail_after(run, self.error)
            return
        decision = empty_answer(run.state.control)
        run.do(c.FinishTurn(fence=fence, cause="complete", decision=decision, report=self._report(None)))

    def keep(self, run: PlanRun, fence: c.Fence) -> None:
        """Keep what there is, and close its calls."""
        place = len(answers(run.state.control, "finish_interruption"))
        message = self._message(message_id(run.state.control.version + 1, place))
        run.do(c.FinishInterruption(fence=fence, message=message, report=self._report(message)))

    @property
    def report(self) -> AttemptReport:
        """What the answer cost, for a chat that does not wait for it any more."""
        return AttemptReport(step=self.step, request=self.request)

    def _message(self, identity: MessageId) -> Message | None:
        parts = self.parts(identity)
        if not parts:
            return None
        return Message(role="assistant", parts=parts, step=self.step, interrupted=self.interrupted)

    def _report(self, message: Message | None) -> AttemptReport:
        return AttemptReport(request=self.request) if message is not None else self.report


class Failed(Struct, frozen=True, kw_only=True):
    """A failed attempt: tried again while its budget lasts, else the turn fails.

    ``message`` is what had come of an answer: a turn that ends here keeps it, a retry makes it void. ``report`` tells
    the cost where no message does. ``flushed`` as in :class:`Answered`.
    """

    error: ClassifiedError
    max_attempts: int
    unit_us: int = SECOND_US
    report: AttemptReport | None = None
    message: Message | None = None
    flushed: bool = True

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Schedule a retry, or fail the turn."""
        control = run.state.control
        attempts = control.model_attempts if self._by_model(run) else control.attempt
        delay = retry_delay_us(self.error, max(attempts, 1), self.max_attempts, unit_us=self.unit_us)
        error = error_info(self.error)
        if delay is None:
            if self.error.retryable:
                error = replace(error, message=Content(given_up(self.error.message, max(attempts, 1))))
            run.do(c.FailTurn(fence=fence, error=error, message=self.message, report=self._left.beside))
        else:
            run.do(c.ScheduleRetry(fence=fence, delay_us=delay, error=error, report=self.report))

    def keep(self, run: PlanRun, fence: c.Fence) -> None:
        """End the turn: an interrupted failure is no error any more."""
        run.do(c.FinishInterruption(fence=fence, message=self.message, report=self._left.beside))

    @property
    def _left(self) -> Leftover:
        return Leftover(message=self.message, report=self.report)

    @staticmethod
    def _by_model(run: PlanRun) -> bool:
        running = run.state.control.running
        return running is not None and running.kind in MODEL_KINDS


class ToolsEnded(Struct, frozen=True, kw_only=True):
    """Results of a batch that are not recorded yet. ``whole``: all its calls have one.

    ``error``: why the turn fails with them, in the same append. ``unstarted``: calls without a result of which nothing
    ran: the log has them as started, because that is written before.
    """

    results: tuple[ToolResultPart, ...]
    whole: bool = True
    error: ClassifiedError | None = None
    unstarted: tuple[CallKey, ...] = ()

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Record the results, and commit the batch where it is whole.

        Of the calls that never began, those that run again with the next holder stay open.
        """
        self._record(run, fence)
        self._record_unstarted(run, fence, lambda call: call.lost_with_worker)
        if self.whole:
            run.do(c.CommitStep(fence=fence))
        _fail_after(run, self.error)

    def keep(self, run: PlanRun, fence: c.Fence) -> None:
        """Keep what finished; what still runs is answered as unknown, and what never began as not started."""
        self._record(run, fence)
        self._record_unstarted(run, fence, lambda call: call.runs)
        run.do(c.FinishInterruption(fence=fence))

    def _record(self, run: PlanRun, fence: c.Fence) -> None:
        for result in self.results:
            run.do(c.RecordToolResult(fence=fence, result=result_at(result, run.level)))

    def _record_unstarted(self, run: PlanRun, fence: c.Fence, also: Callable[[OpenCall], bool]) -> None:
        for call in run.state.control.indexes.open_calls:
            if call.key in self.unstarted and also(call):
                part = ToolResultPart(call=call.key, is_error=True, reason=Reason.NOT_STARTED)
                run.do(c.RecordToolResult(fence=fence, result=part))


class ResultsCame(Struct, frozen=True, kw_only=True):
    """Results of a batch whose other calls still run."""

    results: tuple[ToolResultPart, ...]

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Record them beside history."""
        for result in self.results:
            run.do(c.RecordToolResult(fence=fence, result=result_at(result, run.level)))

    keep = record


class Summarised(Struct, frozen=True, kw_only=True):
    """A summary for a compaction boundary, and what it was made of.

    ``error``: why the turn fails with it, in the same append.
    """

    source: Source
    manual: bool
    summary: Content
    details: Content
    context_tokens: int
    report: AttemptReport
    error: ClassifiedError | None = None

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Commit the boundary; a summary of what was erased meanwhile is dropped, and is made anew where it is due."""
        if not self.source.whole_in(run.state):
            if self.error is not None:
                run.do(c.FailTurn(fence=fence, error=error_info(self.error), report=self.report))
            return
        run.do(
            c.CommitCompaction(
                fence=fence,
                manual=self.manual,
                summary=self.summary,
                details=self.details,
                context_tokens=self.context_tokens,
                report=self.report,
            )
        )
        _fail_after(run, self.error)

    def keep(self, run: PlanRun, fence: c.Fence) -> None:
        """Drop the summary: the user ended the turn."""
        run.do(c.FinishInterruption(fence=fence, report=self.report))


class ContextCollected(Struct, frozen=True, kw_only=True):
    """The context of the agent's source, as a system message."""

    message: Message

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Write it into history."""
        run.do(c.PersistContext(fence=fence, message=self.message))

    def keep(self, run: PlanRun, fence: c.Fence) -> None:
        """Drop it: the next turn collects it again."""
        run.do(c.FinishInterruption(fence=fence))


class Stopped(Struct, frozen=True, kw_only=True):
    """An attempt that was stopped before its end.

    ``report`` tells its cost. ``message`` is what had come of an answer: only an interruption that came meanwhile keeps
    it. ``flushed`` as in :class:`Answered`.
    """

    report: AttemptReport | None = None
    message: Message | None = None
    flushed: bool = True

    def record(self, run: PlanRun, fence: c.Fence) -> None:
        """Record nothing: the plan goes on to let the chat go."""

    def keep(self, run: PlanRun, fence: c.Fence) -> None:
        """Finish the interruption with what had come."""
        left = Leftover(message=self.message, report=self.report)
        run.do(c.FinishInterruption(fence=fence, message=left.message, report=left.beside))


def _fail_after(run: PlanRun, error: ClassifiedError | None) -> None:
    """Fail the turn in the append that recorded an outcome: what was done stays, and nothing follows it."""
    if error is None:
        return
    control = run.state.control
    running = control.running
    fence = c.Fence(
        epoch=control.epoch,
        history_version=control.history_version,
        attempt=running.attempt if running is not None else None,
    )
    run.do(c.FailTurn(fence=fence, error=error_info(error)))


def error_info(error: ClassifiedError) -> ErrorInfo:
    """Return a classified error as events carry it."""
    return ErrorInfo(
        kind=error.kind,
        message=Content(error.message),
        detail=Content(error.detail) if error.detail is not None else None,
        provider=error.provider,
        retryable=error.retryable,
        status_code=error.status_code,
        retry_after_us=error.retry_after_us,
        chain_broken=error.chain_broken,
    )
