"""The compact effect: ask a model for a summary of what stands before the unanswered user messages."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from chatstate.handlers.worker import trailing_users
from events.content import Content
from events.ids import MessageId
from events.parts import TextPart
from events.state import ChatState
from generation.actions.attempt import Attempt
from generation.actions.request import make_request
from generation.actions.streaming import Conclusions, ModelCall, prepare
from generation.cancellation import Cause
from generation.decide import compaction_threshold
from generation.error_texts import stream_message
from generation.errors import ClassifiedError, ProviderError
from generation.outcomes import Stopped, Summarised
from generation.plans import Outcome
from generation.prompt import build_prompt
from generation.prompt_texts import summary_instruction


async def compact(attempt: Attempt) -> Outcome:
    """Call the compaction model (or the chat's) once.

    Returns:
        The summary; on a failure the classified error; on an interruption only what the call cost.
    """
    model = attempt.policy.compaction_model or attempt.model()
    hint = attempt.state.need_transcript("compact").hint
    instruction = summary_instruction(hint.text if hint is not None and hint.available else None)
    prompt = build_prompt(_answered(attempt.state), instruction=instruction)
    request, digests = make_request(attempt, model, prompt, tool_choice_none=True)
    return await prepare(attempt, _CONCLUSIONS, model, request, digests).concluded()


def _failed(call: ModelCall, error: ProviderError) -> Outcome:
    return call.attempt.failed(error.error, call.report())


def _cancelled(call: ModelCall) -> Outcome | None:
    """Return what the call cost; None where nothing may be written."""
    told = (Cause.USER_INTERRUPT, Cause.SHUTDOWN, Cause.HISTORY_CHANGED)
    return Stopped(report=call.report()) if call.attempt.scope.cause in told else None


def _answered(state: ChatState) -> ChatState:
    """Return the chat without its trailing unanswered user messages: they are kept verbatim, not summarised."""
    transcript = state.need_transcript("compact")
    trailing = trailing_users(transcript.messages)
    position = transcript.messages.find(trailing[0].id) if trailing else None
    if position is None:
        return state
    return ChatState(
        control=state.control, transcript=replace(transcript, messages=transcript.messages.before(position))
    )


def _summary(call: ModelCall) -> Summarised:
    attempt = call.attempt
    control, policy = attempt.state.control, attempt.policy
    parts = call.assembler.parts(MessageId("0.0"))
    text = " ".join(part.text.text.strip() for part in parts if isinstance(part, TextPart)).strip()
    if not text:
        raise ProviderError(
            ClassifiedError(
                kind="generic",
                message=stream_message("no_summary", call.model.provider),
                provider=call.model.provider,
                retryable=True,
            )
        )
    manual = control.compaction == "requested"
    details: dict[str, str | int | None] = {
        "source": "manual" if manual else "automatic",
        "summary": text,
        "context_tokens": control.indexes.context_tokens,
        "context_limit_tokens": policy.model.context_limit if policy.model is not None else None,
        "threshold_tokens": compaction_threshold(policy),
    }
    return Summarised(
        manual=manual,
        summary=Content(text),
        details=Content(dict(details)),
        context_tokens=control.indexes.context_tokens,
        report=call.report(),
    )


_CONCLUSIONS: Final = Conclusions(answered=_summary, failed=_failed, cancelled=_cancelled)
