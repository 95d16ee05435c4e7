"""One model call: request, stream with its guards, live parts, and the assembled answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from msgspec.structs import replace

from events.ids import MessageId
from events.messages import Step
from events.records import AttemptReport, ModelPolicy, RequestDigests
from generation.actions.attempt import Attempt
from generation.actions.silence import SilenceGuard
from generation.assemble import Assembler
from generation.errors import ClassifiedError, InvalidBaseUrl, MissingExtra, ProviderError, UnknownModel
from generation.live import live_parts
from generation.outcome import require_consent, require_output
from generation.parts import LivePart, PartBuffer
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

    def step(self) -> Step:
        """Return what is known of the call so far."""
        step = self.assembler.step(
            self.model.provider, self.model.name, started_at=self.started_at, ended_at=self.attempt.runtime.now()
        )
        return replace(step, cost_micros=cost_micros(step.usage, self.model))

    def report(self) -> AttemptReport:
        """Return the report of a call that leaves no message."""
        return AttemptReport(step=self.step(), request=self.digests)

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
        try:
            await self._take(stream)
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
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

    async def _take(self, stream: AsyncIterator[StreamPart | UsageSoFar]) -> None:
        """Take all parts, each within its time."""
        runtime, scope = self.attempt.runtime, self.attempt.scope
        shown_to = runtime.parts if self.attempt.running.kind == "generate" else None
        guard = SilenceGuard(runtime.settings.first_part_timeout)
        try:
            async for part in stream:
                reach("provider.part")
                guard.heard(runtime.settings.silence_timeout)
                if scope.cause is not None:
                    # The stream took the cancellation for its own matter and goes on: what came until now counts.
                    raise asyncio.CancelledError
                for shown in self.assembler.add(part, runtime.now()):
                    if shown_to is not None:  # a summary is no answer: nobody watches it being written
                        self._show(shown_to, live_parts(shown))
        except asyncio.CancelledError:
            if scope.cause is None and guard.expired:
                raise ProviderError(self._silent(guard.limit)) from None
            raise
        finally:
            guard.end()

    def _silent(self, limit: float) -> ClassifiedError:
        return ClassifiedError(
            kind="stream_silence_timeout",
            message=f"The model sent nothing for {limit:g} seconds.",
            provider=self.model.provider,
            retryable=True,
        )


def prepare(attempt: Attempt, model: ModelPolicy, request: ModelRequest, digests: RequestDigests) -> ModelCall:
    """Return a call that is ready to run."""
    return ModelCall(
        attempt=attempt,
        model=model,
        request=request,
        digests=digests,
        assembler=Assembler({tool.name: tool for tool in attempt.policy.tools}),
        started_at=attempt.runtime.now(),
    )
