"""One model call: request, stream with its guards, live parts, and the assembled answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from events.ids import MessageId
from events.messages import Step
from events.records import AttemptReport, ModelPolicy, RequestDigests
from generation.actions.attempt import Attempt
from generation.actions.silence import SilenceGuard
from generation.assemble import Assembler
from generation.cancellation import Cause
from generation.errors import (
    INTERNAL,
    ClassifiedError,
    InvalidBaseUrl,
    MissingExtra,
    OptionRefused,
    ProviderError,
    UnknownModel,
)
from generation.flushing import PartialSource
from generation.foreign import contained
from generation.live import live_parts
from generation.observing import CallBegun, CallEnded
from generation.outcome import require_consent, require_output, too_silent
from generation.partials import CallStart
from generation.parts import LivePart, PartBuffer
from generation.plans import Outcome
from generation.policy import priced
from generation.prompt_types import ModelRequest
from generation.providers.contract import Finish, Provider, StreamPart, UsageSoFar
from generation.providers.native import check_native
from generation.providers.sdk_errors import stream_closed
from generation.tools.arguments import fits
from store.failpoints import reach


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusions:
    """What a model call of one kind comes to.

    Attributes:
        answered: Gives the outcome of a whole answer; it may raise a ProviderError.
        failed: That of a failure.
        cancelled: That of a cancellation, by the scope's cause; None where nothing may be written.
        shown: What those who watch are shown of a part that the assembler has cleaned.
    """

    answered: Callable[[ModelCall], Outcome]
    failed: Callable[[ModelCall, ProviderError], Outcome]
    cancelled: Callable[[ModelCall], Outcome | None]
    shown: Callable[[StreamPart], tuple[LivePart, ...]] = live_parts


@dataclass(slots=True)
class ModelCall:
    """A call under way: what of it is known at any moment, also after it was cancelled or failed."""

    attempt: Attempt
    comes_to: Conclusions
    model: ModelPolicy
    request: ModelRequest
    digests: RequestDigests
    assembler: Assembler
    started_at: int
    source: PartialSource | None
    begun: bool = False
    stores: bool = False
    """Whether the service keeps the response, to go on from it later."""
    observed: CallBegun | None = None
    """What observers were told of its beginning, until they are told of its end."""

    @property
    def flushed(self) -> bool:
        """Whether the store may hold chunks of the answer."""
        return self.source is not None and self.source.flushed

    def step(self) -> Step:
        """Return what is known of the call so far."""
        step = self.assembler.step(
            self.model.provider, self.model.name, started_at=self.started_at, ended_at=self.attempt.runtime.now()
        )
        return replace(priced(step, self.model), continued=self.request.continues)

    def report(self) -> AttemptReport:
        """Return the report of a call that leaves no message."""
        return AttemptReport(step=self.step(), request=self.digests)

    async def concluded(self) -> Outcome:
        """Run the call to its end, or until it is left behind, close it, and return what it comes to.

        Raises:
            asyncio.CancelledError: It was cancelled, and nothing may be written.
        """
        self.attempt.scope.left_with = self._left
        outcome: Outcome | None
        error: ClassifiedError | None = INTERNAL
        try:
            await self._run()
            outcome = self.comes_to.answered(self)
            error = None
        except ProviderError as failure:
            error = failure.error
            outcome = self.comes_to.failed(self, failure)
        except asyncio.CancelledError:
            error = None
            outcome = self.comes_to.cancelled(self)
            if outcome is None:
                raise
        finally:
            self._tell_end(error)
            await self._close()
        return outcome

    def _tell_end(self, error: ClassifiedError | None) -> None:
        """Tell observers once that the call has ended, if they were told that it began."""
        observed, self.observed = self.observed, None
        if observed is not None:
            cause = self.attempt.scope.cause
            ended = CallEnded(
                step=self.step(),
                parts=lambda: self.assembler.parts(MessageId("0.0")),
                error=error,
                cause=cause.name.lower() if cause is not None else None,
            )
            self.attempt.runtime.observer.call_ended(observed, ended)

    def _left(self) -> Outcome | None:
        """Return what the call comes to that is left behind: it may go on for ever."""
        self._leave()
        if self.attempt.scope.cause is not None:
            self._tell_end(None)
            return self.comes_to.cancelled(self)
        silent = self._silent()
        self._tell_end(silent.error)
        return self.comes_to.failed(self, silent)

    async def _close(self) -> None:
        """Hand nothing of the answer to the store any more.

        Not waited for any longer where the call is cancelled meanwhile: what has come of it counts all the same.
        """
        try:
            if self.source is not None:
                await self.source.close()
        except asyncio.CancelledError:
            self._leave()
            if self.attempt.scope.cause in (None, Cause.LEASE_LOST):
                raise

    def _leave(self) -> None:
        if self.source is not None:
            self.source.leave()

    async def _run(self) -> None:
        """Stream the answer into the assembler and to those who watch, each part within its time.

        Closing the stream is guarded too: it may hang in that.

        Raises:
            ProviderError: The call failed, was cut, was silent for too long, or gave no output.
        """
        runtime = self.attempt.runtime
        if runtime.observed:
            self.observed = CallBegun(self.attempt.effect, self.model, self.request, runtime.now())
            runtime.observer.call_begun(self.observed)
        guard = self.attempt.guard(runtime.settings.first_part_timeout)
        try:
            with contained():
                provider = self._provider()
                reach("provider.calling")
                stream = provider.stream(self.request)
                try:
                    async for part in stream:
                        self._take(part, guard)
                finally:
                    if isinstance(stream, AsyncGenerator):
                        await stream.aclose()
        except asyncio.CancelledError:
            if self.attempt.timed_out(guard):
                raise self._silent() from None
            raise
        finally:
            guard.end()
        self._require_answer()

    def _provider(self) -> Provider:
        try:
            provider = self.attempt.runtime.provider(self.model.reference)
            if not self.request.tool_choice_none:
                check_native(self.model.provider, self.request.native)
        except (UnknownModel, MissingExtra, InvalidBaseUrl, OptionRefused) as error:
            raise ProviderError(
                ClassifiedError(kind="config", message=f"The model cannot be used: {error}.")
            ) from error
        return provider

    def _take(self, part: StreamPart | UsageSoFar, guard: SilenceGuard) -> None:
        runtime, scope = self.attempt.runtime, self.attempt.scope
        reach("provider.part")
        if not isinstance(part, UsageSoFar):  # what a request costs is no answer to it
            if not self.begun:
                self._begin(part)
            guard.heard(runtime.settings.silence_timeout)
        if scope.over:
            # The stream took the cancellation for its own matter and goes on: what came until now counts.
            raise asyncio.CancelledError
        at = runtime.now()
        for shown in self.assembler.add(part, at):
            self._show(runtime.parts, self.comes_to.shown(shown))
        if self.source is not None:
            self.source.add(part, at)

    def _begin(self, part: StreamPart) -> None:
        """Take note of the first part."""
        self.begun = True
        if self.observed is not None and not isinstance(part, Finish):  # an end is no output
            runtime = self.attempt.runtime
            runtime.observer.first_part(self.observed, at=runtime.now())

    def _require_answer(self) -> None:
        finish = self._finish()
        require_consent(finish, self.model.provider)
        if self.assembler.awaits_call:
            raise stream_closed(self.model.provider)
        require_output(self.assembler.parts(MessageId("0.0")), finish.reason, self.model.provider)

    def _show(self, buffer: PartBuffer, parts: tuple[LivePart, ...]) -> None:
        for part in parts:
            buffer.add(self.attempt.episode, part)

    def _finish(self) -> Finish:
        if self.assembler.finish is None:
            raise stream_closed(self.model.provider)
        return self.assembler.finish

    def _silent(self) -> ProviderError:
        """Return the failure of a call that said nothing for too long."""
        settings = self.attempt.runtime.settings
        limit = settings.silence_timeout if self.begun else settings.first_part_timeout
        return too_silent(self.model.provider, limit, begun=self.begun)


def prepare(
    attempt: Attempt, comes_to: Conclusions, model: ModelPolicy, request: ModelRequest, digests: RequestDigests
) -> ModelCall:
    """Return a call that is ready to be concluded."""
    tools = {tool.name: tool for tool in attempt.policy.tools}
    started_at = attempt.runtime.now()
    source = None
    if attempt.running.kind == "generate":
        start = CallStart(model=model, digests=digests, started_at=started_at)
        source = attempt.runtime.flusher.open(attempt.episode, attempt.state.control.epoch, start, tools)
    return ModelCall(
        attempt=attempt,
        comes_to=comes_to,
        model=model,
        request=request,
        digests=digests,
        assembler=Assembler(tools, partial(fits, attempt.declared.tool_set)),
        started_at=started_at,
        source=source,
    )
