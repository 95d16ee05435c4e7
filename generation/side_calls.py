"""Model calls beside the turns: one question, one short text as the answer, and the walk from one model to the next.

They use the chat's providers and nothing of its turns: no tools, no options of the models, no durable retry. What they
took is collected call by call, whatever comes of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from events.ids import MessageId
from events.messages import Step
from events.parts import TextPart
from events.records import ModelPolicy
from generation.assemble import Assembler
from generation.errors import INTERNAL, ClassifiedError, InvalidBaseUrl, MissingExtra, ProviderError, UnknownModel
from generation.models import ModelConfig
from generation.observing import CallBegun, CallEnded, Effect
from generation.outcome import require_consent
from generation.policy import priced
from generation.prompt_types import ModelRequest, PromptMessage, PromptText
from generation.providers.contract import Finish, Provider, StreamPart, UsageSoFar
from generation.providers.sdk_errors import stream_closed
from generation.retry import SECOND_US
from generation.retrying import retry_call, see_cancellation
from generation.runtime import Runtime
from store.log import get_logger

_log = get_logger(__name__)

DEADLINE: Final = 30.0
"""Seconds that each model has, its retries included."""

TITLE_TOKENS: Final = 256
LABEL_TOKENS: Final = 64

CANCELLED: Final = "cancelled"
"""The cause that observers are told of a call whose asker has gone."""

_ENDING: Final = 1.0
"""Seconds that a call gets to end after it was cancelled; then it is left behind."""


class Question(Struct, frozen=True, kw_only=True):
    """What is asked beside the turns.

    Attributes:
        system: What the model is to do.
        text: What it is shown.
        tokens: The most of the answer.
        accept: Gives what of the answer is used; None where it is of no use.
        any_error: Whether the next model is asked after every failure, or only after one that may pass.
        deadline: Seconds that each model has.
    """

    system: str
    text: str
    tokens: int
    accept: Callable[[str], str | None]
    any_error: bool = True
    deadline: float = DEADLINE


class SideAnswer(Struct, frozen=True, kw_only=True):
    """What came of a question: the accepted text, or, with an empty one, how the last model that was asked failed."""

    text: str = ""
    error: ClassifiedError | None = None


async def ask(
    runtime: Runtime,
    candidates: Sequence[ModelConfig],
    question: Question,
    spent: list[Step],
    effect: Effect | None = None,
) -> SideAnswer:
    """Ask one model after the other until one gives an answer that is accepted.

    Args:
        runtime: The process's parts.
        candidates: Who is asked, in order.
        question: What is asked.
        spent: Gets what each call took and cost, as far as a service told it, whatever comes of it.
        effect: What observers are told that the calls are for; None where nobody observes.

    Raises:
        asyncio.CancelledError: The caller was cancelled, before it asked or while it did.
    """
    error = ClassifiedError(kind="config", message="There is no model to ask.")
    for config in candidates:
        see_cancellation()
        told = _Told(runtime, effect)
        try:
            work = _called(runtime, config, question, spent, told)
            said = await _within(question.deadline, config.provider, work, told)
        except ProviderError as failure:
            error = failure.error
            passes = error.retryable or error.kind == "timeout"
        else:
            accepted = question.accept(said)
            if accepted is not None:
                return SideAnswer(text=accepted)
            error, passes = _of_no_use(said, config.provider), False
        _log.debug("side_call_failed", model=config.reference, kind=error.kind)
        if not (passes or question.any_error):
            break
    return SideAnswer(error=error)


class _Told:
    """What observers are told of the calls of one model: that each begins, and once how it ended."""

    def __init__(self, runtime: Runtime, effect: Effect | None) -> None:
        self._runtime = runtime
        self._effect = effect
        self._begun: CallBegun | None = None
        self._assembler = Assembler({})
        self._heard = False

    @contextmanager
    def call(self, model: ModelPolicy, request: ModelRequest, assembler: Assembler) -> Iterator[None]:
        """Tell of a call within it."""
        if self._effect is not None:
            self._assembler, self._heard = assembler, False
            self._begun = CallBegun(self._effect, model, request, self._runtime.now())
            self._runtime.observer.call_begun(self._begun)
        error: ClassifiedError | None = INTERNAL
        cause: str | None = None
        try:
            yield
            error = None
        except ProviderError as failure:
            error = failure.error
            raise
        except asyncio.CancelledError:
            error, cause = None, CANCELLED
            raise
        finally:
            self.end(error, cause)

    def part(self, part: StreamPart | UsageSoFar) -> None:
        """Tell of the first part of the answer."""
        if self._begun is None or self._heard or isinstance(part, UsageSoFar):
            return
        self._heard = True
        if not isinstance(part, Finish):
            self._runtime.observer.first_part(self._begun, at=self._runtime.now())

    def end(self, error: ClassifiedError | None, cause: str | None = None) -> None:
        """Tell that the call under way has ended, unless that was told, or none was begun."""
        begun, self._begun = self._begun, None
        if begun is None:
            return
        assembler, model = self._assembler, begun.model
        step = assembler.step(model.provider, model.name, started_at=begun.at, ended_at=self._runtime.now())
        ended = CallEnded(
            step=priced(step, model), parts=lambda: assembler.parts(MessageId("0.0")), error=error, cause=cause
        )
        self._runtime.observer.call_ended(begun, ended)


async def _within(seconds: float, provider: str, work: Coroutine[Any, Any, str], told: _Told) -> str:
    """Do work in a task of its own, which is cancelled where it takes too long, and left behind if it then hangs."""
    task = asyncio.create_task(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
        if not task.done():
            late = _too_late(provider, seconds)
            told.end(late.error)
            raise late
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=_ENDING)
            told.end(None, CANCELLED)  # where it hangs
        if task.done() and not task.cancelled():
            task.exception()  # whatever it was, it is told already, or came too late


async def _called(runtime: Runtime, config: ModelConfig, question: Question, spent: list[Step], told: _Told) -> str:
    """Call one model, again where that may help, and return what it says."""
    provider = _provider(runtime, config.reference)
    model = config.policy()
    request = _request(config, question)
    unit_us = round(runtime.settings.model_retry_unit * SECOND_US)
    return await retry_call(
        lambda: _once(runtime, provider, model, request, spent, told),
        config.provider,
        unit_us=unit_us,
        told=lambda again: _log.debug("side_call_retried", attempt=again.attempt, kind=again.error.kind),
    )


def _provider(runtime: Runtime, reference: str) -> Provider:
    try:
        return runtime.provider(reference)
    except (UnknownModel, MissingExtra, InvalidBaseUrl) as error:
        raise ProviderError(ClassifiedError(kind="config", message=f"The model cannot be used: {error}.")) from error


def _request(config: ModelConfig, question: Question) -> ModelRequest:
    most = question.tokens if config.max_output is None else min(question.tokens, config.max_output)
    return ModelRequest(
        model=config.name,
        system=(question.system,),
        messages=(PromptMessage(role="user", parts=(PromptText(text=question.text),)),),
        max_output=most,
        extra=dict(config.extra),
        context_limit=config.context_limit,
    )


async def _once(
    runtime: Runtime, provider: Provider, model: ModelPolicy, request: ModelRequest, spent: list[Step], told: _Told
) -> str:
    assembler, started_at, heard = Assembler({}), runtime.now(), False
    with told.call(model, request, assembler):
        stream = provider.stream(request)
        try:
            async for part in stream:
                heard = True
                told.part(part)
                assembler.add(part, runtime.now())
        finally:
            if heard:
                step = assembler.step(model.provider, model.name, started_at=started_at, ended_at=runtime.now())
                spent.append(priced(step, model))
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        if assembler.finish is None:
            raise stream_closed(model.provider)
        require_consent(assembler.finish, model.provider)
    parts = assembler.parts(MessageId("0.0"))
    return "".join(part.text.text for part in parts if isinstance(part, TextPart))


def _too_late(provider: str, seconds: float) -> ProviderError:
    message = f"The model did not answer within {seconds:g} seconds."
    return ProviderError(ClassifiedError(kind="timeout", message=message, provider=provider, retryable=True))


def _of_no_use(said: str, provider: str) -> ClassifiedError:
    return ClassifiedError(
        kind="generic",
        message="The model gave an answer that cannot be used.",
        detail=said.strip()[:200] or "it was empty",
        provider=provider,
    )
