"""The generate effect: ask the model, keep what came of the answer where it is interrupted."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from msgspec.structs import replace

from events.messages import KeptResponse, Message, Step
from events.records import AttemptReport, ModelPolicy
from generation.actions.attempt import Attempt
from generation.actions.request import make_request
from generation.actions.streaming import Conclusions, ModelCall, prepare
from generation.cancellation import Cause
from generation.chain import continuation
from generation.classify import as_broken_chain
from generation.errors import InvalidBaseUrl, MissingExtra, ProviderError, UnknownModel
from generation.outcomes import Answered, Stopped
from generation.partials import cut_answer
from generation.plans import Outcome


def generate(attempt: Attempt) -> Coroutine[Any, Any, Outcome]:
    """Call the model once.

    Returns:
        The answer; on an interruption what had come of it; on a failure the classified error.
    """
    # No coroutine of its own, which would hold on to what the request was made of until the answer has come.
    return _call(attempt).concluded()


def _call(attempt: Attempt) -> ModelCall:
    model = attempt.model()
    prompt = attempt.prompt.build(attempt.state.messages)
    own = attempt.declared.system
    system = attempt.prompt.system_after(own) if prompt.system else None
    stores = _stores(attempt, model)
    chain = continuation(prompt, model, stores=stores, lost=attempt.state.control.lost_response)
    request, digests = make_request(attempt, model, prompt, system=system, chain=chain)
    call = prepare(attempt, _CONCLUSIONS, model, request, digests)
    call.stores = stores
    return call


def _stores(attempt: Attempt, model: ModelPolicy) -> bool:
    """Whether the service keeps what it answers, and the provider can go on from it."""
    if attempt.config(model).options.get("store") is not True:
        return False
    try:
        provider = attempt.runtime.provider(model.provider)
    except (UnknownModel, MissingExtra, InvalidBaseUrl):
        return False  # the call itself says so
    return getattr(provider, "goes_on", False) is True


def _failed(call: ModelCall, error: ProviderError) -> Outcome:
    """Return the failure, with what had come of the answer for a turn that fails by it."""
    report, told = call.report(), error.error
    if call.request.continues is not None:
        told = as_broken_chain(told)
    return replace(call.attempt.failed(told, report), message=_cut(call, report), flushed=call.flushed)


def _cut(call: ModelCall, report: AttemptReport) -> Message | None:
    return cut_answer(call.assembler, report.step) if report.step is not None else None


def _cancelled(call: ModelCall) -> Outcome | None:
    """Return what to keep; None where nothing may be written."""
    match call.attempt.scope.cause:
        case Cause.USER_INTERRUPT:
            return _answer(call, interrupted=True)
        case Cause.SHUTDOWN | Cause.HISTORY_CHANGED:
            # The chat is let go, or was edited; but a user may interrupt before that is written.
            report = call.report()
            return Stopped(report=report, message=_cut(call, report), flushed=call.flushed)
        case _:
            return None


def _answer(call: ModelCall, *, interrupted: bool = False) -> Answered:
    step = call.step()
    ended_at = step.ended_at if interrupted else None
    return Answered(
        parts=lambda identity: call.assembler.parts(identity, interrupted=interrupted, ended_at=ended_at),
        step=step if interrupted else _kept(call, step),
        request=call.digests,
        interrupted=interrupted,
        flushed=call.flushed,
    )


def _kept(call: ModelCall, step: Step) -> Step:
    """Return the step of a whole answer with what a later request needs to go on from it."""
    if not call.stores or step.response_id is None or not call.model.options:
        return step
    return replace(step, kept=KeptResponse(before=call.digests.messages, options=call.model.options))


_CONCLUSIONS: Final = Conclusions(answered=_answer, failed=_failed, cancelled=_cancelled)
