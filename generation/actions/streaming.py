"""One model call: request, stream with its guards, live parts, and the assembled answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass

from msgspec.structs import replace

from events.ids import MessageId
from events.messages import Step
from events.records import AttemptReport, ModelPolicy, RequestDigests
from generation.actions.attempt import Attempt
from generation.actions.silence import SilenceGuard
from generation.assemble import Assembler
from generation.cancellation import Cause
from generation.errors import ClassifiedError, InvalidBaseUrl, MissingExtra, ProviderError, UnknownModel
from generation.flushing import PartialSource
from generation.live import live_parts
from generation.outcome import require_consent, require_output
from generation.partials import CallStart
from generation.parts import LivePart, PartBuffer
from generation.plans import Outcome
from generation.policy import cost_micros
from generation.prompt_types import ModelRequest
from generation.providers.contract import Finish, StreamPart, UsageSoFar
from store.failpoints import reach


@dataclass(slots=True)
class ModelCall:
    """A call under way: what of it is known at any moment, also after it was cancelled or failed."""

    attempt: Attempt
    model: ModelPolicy
    request: ModelRequest
    digests: RequestDigests
    assembler: Assembler
    started_at: int
    source: PartialSource | None
    guard: SilenceGuard | None = None

    @property
    def flushed(self) -> bool:
        """Whether the store may hold chunks of the answer."""
        return self.source is not None and self.source.flushed

    def step(self) -> Step:
        """Return what is known of the call so far."""
        step = self.assembler.step(
            self.model.provider, self.model.name, started_at=self.started_at, ended_at=self.attempt.runtime.now()
        )
        return replace(step, cost_micros=cost_micros(step.usage, self.model))

    def report(self) -> AttemptReport:
        """Return the report of a call that leaves no message."""
        return AttemptReport(step=self.step(), request=self.digests)

    async def close(self) -> None:
        """End: nothing of the answer is handed to the store any more."""
        if self.source is not None:
            await self.source.close()

    def leave(self) -> None:
        """End as ``close`` does, without waiting: the call itself may go on for ever."""
        if self.source is not None:
            self.source.leave()

    async def run(self) -> None:
        """Stream the answer into the assembler and to those who watch.

        Raises:
            ProviderError: The call failed, was cut, was silent for too long, or gave no output.
        """
        runtime = self.attempt.runtime
        try:
            provider = runtime.provider(self.model.provider)
        except (UnknownModel, MissingExtra, InvalidBaseUrl) as error:
            raise ProviderError(
                ClassifiedError(kind="config", message=f"The model cannot be used: {error}.")
            ) from error
        reach("provider.calling")
        stream = provider.stream(self.request)
        settings = runtime.settings
        guard = self.guard = runtime.silences.guard(
            settings.first_part_timeout, settings.grace, self.attempt.scope.leave
        )
        try:
            await self._take(stream, guard)
        except asyncio.CancelledError:
            if self.attempt.scope.cause is None and guard.expired:
                raise self.silent() from None
            raise
        finally:
            guard.end()
        finish = self._finish()
        require_consent(finish, self.model.provider)
        require_output(self.assembler.parts(MessageId("0.0")), finish.reason, self.model.provider)

    def _show(self, buffer: PartBuffer, parts: tuple[LivePart, ...]) -> None:
        for part in parts:
            buffer.add(self.attempt.episode, part)

    def _finish(self) -> Finish:
        if self.assembler.finish is None:
            raise ProviderError(
                ClassifiedError(
                    kind="timeout",
                    message="The model's answer was cut off.",
                    provider=self.model.provider,
                    retryable=True,
                )
            )
        return self.assembler.finish

    async def _take(self, stream: AsyncIterator[StreamPart | UsageSoFar], guard: SilenceGuard) -> None:
        """Take all parts, each within its time, and close the stream, which is guarded too: it may hang in that."""
        runtime, scope = self.attempt.runtime, self.attempt.scope
        shown_to = runtime.parts if self.attempt.running.kind == "generate" else None
        try:
            async for part in stream:
                reach("provider.part")
                guard.heard(runtime.settings.silence_timeout)
                if scope.over:
                    # The stream took the cancellation for its own matter and goes on: what came until now counts.
                    raise asyncio.CancelledError
                at = runtime.now()
                for shown in self.assembler.add(part, at):
                    if shown_to is not None:  # a summary is no answer: nobody watches it being written
                        self._show(shown_to, live_parts(shown))
                if self.source is not None:
                    self.source.add(part, at)
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    def silent(self) -> ProviderError:
        """Return the failure of a call that said nothing for too long."""
        settings = self.attempt.runtime.settings
        limit = self.guard.limit if self.guard is not None else settings.first_part_timeout
        return ProviderError(
            ClassifiedError(
                kind="stream_silence_timeout",
                message=f"The model sent nothing for {limit:g} seconds.",
                provider=self.model.provider,
                retryable=True,
            )
        )


async def concluded(
    call: ModelCall,
    *,
    answered: Callable[[ModelCall], Outcome],
    failed: Callable[[ModelCall, ProviderError], Outcome],
    cancelled: Callable[[ModelCall], Outcome | None],
) -> Outcome:
    """Run a call to its end, or until it is left behind, close it, and return what it comes to.

    Args:
        call: The call.
        answered: Gives the outcome of a whole answer; it may raise a ProviderError.
        failed: That of a failure.
        cancelled: That of a cancellation, by the scope's cause; None where nothing may be written.

    Raises:
        asyncio.CancelledError: It was cancelled, and nothing may be written.
    """
    scope = call.attempt.scope

    def left() -> Outcome | None:
        call.leave()
        return cancelled(call) if scope.cause is not None else failed(call, call.silent())

    scope.left_with = left
    outcome: Outcome | None
    try:
        await call.run()
        outcome = answered(call)
    except ProviderError as error:
        outcome = failed(call, error)
    except asyncio.CancelledError:
        outcome = cancelled(call)
        if outcome is None:
            raise
    finally:
        await _close(call)
    return outcome


async def _close(call: ModelCall) -> None:
    """Close a call, and wait no longer where it is cancelled meanwhile: what has come of it counts all the same."""
    try:
        await call.close()
    except asyncio.CancelledError:
        call.leave()
        if call.attempt.scope.cause in (None, Cause.LEASE_LOST):
            raise


def prepare(attempt: Attempt, model: ModelPolicy, request: ModelRequest, digests: RequestDigests) -> ModelCall:
    """Return a call that is ready to run; close it when it has ended."""
    tools = {tool.name: tool for tool in attempt.policy.tools}
    started_at = attempt.runtime.now()
    source = None
    if attempt.running.kind == "generate":
        start = CallStart(model=model, digests=digests, started_at=started_at)
        source = attempt.runtime.flusher.open(attempt.episode, attempt.state.control.epoch, start, tools)
    return ModelCall(
        attempt=attempt,
        model=model,
        request=request,
        digests=digests,
        assembler=Assembler(tools),
        started_at=started_at,
        source=source,
    )
