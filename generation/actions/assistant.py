"""The generate effect: ask the model, keep what came of the answer where it is interrupted."""

from __future__ import annotations

import asyncio

from generation.actions.attempt import Attempt
from generation.actions.streaming import ModelCall, prepare
from generation.cancellation import Cause
from generation.errors import ProviderError
from generation.outcomes import Answered, Stopped
from generation.plans import Outcome
from generation.prompt import build_prompt
from generation.prompt_types import ModelRequest


async def generate(attempt: Attempt) -> Outcome:
    """Call the model once.

    Returns:
        The answer; on an interruption what had come of it; on a failure the classified error.
    """
    model = attempt.model()
    system, messages = build_prompt(attempt.state)
    request = ModelRequest(
        model=model.name,
        system=(*attempt.agent.system_texts, *system),
        messages=messages,
        tools=attempt.agent.declarations(),
        max_output=model.max_output,
        effort=model.effort,
        options=dict(attempt.config(model).options),
    )
    call = prepare(attempt, model, request)
    try:
        await call.run()
    except ProviderError as error:
        return attempt.failed(error.error, call.report())
    except asyncio.CancelledError:
        outcome = _cancelled(call)
        if outcome is None:
            raise
        return outcome
    return _answer(call, interrupted=False)


def _cancelled(call: ModelCall) -> Outcome | None:
    """Return what to keep; None where nothing may be written."""
    match call.attempt.scope.cause:
        case Cause.USER_INTERRUPT:
            return _answer(call, interrupted=True)
        case Cause.SHUTDOWN | Cause.HISTORY_CHANGED:
            return Stopped(report=call.report())
        case _:
            return None


def _answer(call: ModelCall, *, interrupted: bool) -> Answered:
    return Answered(
        parts=lambda identity: call.assembler.parts(identity, interrupted=interrupted),
        step=call.step(),
        request=call.digests,
        interrupted=interrupted,
    )
