"""The compact effect: ask a model for a summary of what stands before the unanswered user messages.

Which model is asked, how often, and with which tools is decided here; what a summary must be and what is recorded of it
in ``generation.summary``.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from events.content import Content, Json
from events.ids import MessageId
from events.records import ModelPolicy
from events.state import ChatState
from generation.actions.attempt import Attempt
from generation.actions.hooked import hint_of_hooks
from generation.actions.request import Tools, make_request
from generation.actions.streaming import Conclusions, ModelCall, prepare
from generation.cancellation import Cause
from generation.classify import context_too_large
from generation.errors import InvalidBaseUrl, MissingExtra, ProviderError, UnknownModel
from generation.live import summary_parts
from generation.outcomes import Failed, Stopped, Summarised
from generation.parts import LiveResult
from generation.plans import Outcome
from generation.prompt import build_prompt
from generation.prompt_texts import summarised, summary_instruction
from generation.summary import details_of, output_cap, source_of, summary_of
from store.log import get_logger

_log: Final = get_logger(__name__)

_NOT_USABLE: Final = frozenset({"missing_key", "provider_disabled"})
"""Kinds of failures by which a model shows, before it was asked anything, that it cannot be used here."""


async def compact(attempt: Attempt) -> Outcome:
    """Have the compaction model (or the chat's) write a summary.

    A compaction model that cannot be used here is passed by for the chat's own; one that fails when it is used is not.

    Returns:
        The summary; on a failure the classified error; on an interruption only what the call cost.
    """
    try:
        hint = await hint_of_hooks(attempt) if attempt.runtime.hooks.at("pre_compact") else None
    except ProviderError as failure:
        outcome: Outcome = attempt.failed(failure.error)
    else:
        outcome = await _by_models(attempt, hint)
    if isinstance(outcome, Failed):
        _show_failure(attempt, outcome)
    return outcome


async def _by_models(attempt: Attempt, hint: str | None) -> Outcome:
    own = attempt.model()
    model = attempt.policy.compaction_model or own
    if model is own:
        return await _ask(attempt, own, hint)
    if (why := _unresolved(attempt, model)) is not None:
        return await _instead(attempt, own, why, hint)
    outcome = await _ask(attempt, model, hint)
    if isinstance(outcome, Failed) and outcome.error.kind in _NOT_USABLE:
        outcome = await _instead(attempt, own, outcome.error.kind, hint)
    return outcome


def _unresolved(attempt: Attempt, model: ModelPolicy) -> str | None:
    """Return why there is no provider for a model; None where there is one."""
    try:
        attempt.runtime.provider(model.reference)
    except (UnknownModel, MissingExtra, InvalidBaseUrl) as error:
        return str(error)
    return None


async def _instead(attempt: Attempt, own: ModelPolicy, why: str, hint: str | None) -> Outcome:
    _log.warning("compaction_model_unusable", chat=attempt.chat, agent=attempt.agent.name, error=why)
    return await _ask(attempt, own, hint)


async def _ask(attempt: Attempt, model: ModelPolicy, hint: str | None) -> Outcome:
    """Ask a model, and once more without tools where they made the request too large."""
    own = attempt.model()
    # Tools are only worth their room where they stand in what the model has cached of the chat.
    same = (model.provider, model.name) == (own.provider, own.name)
    call = _call(attempt, model, "unused" if same else "none", hint)
    outcome = await call.concluded()
    too_large = isinstance(outcome, Failed) and context_too_large(outcome.error)
    if too_large and (call.request.tools or call.request.native) and not attempt.scope.over:
        outcome = await _call(attempt, model, "none", hint).concluded()
    return outcome


def _call(attempt: Attempt, model: ModelPolicy, tools: Tools, hooked: str | None) -> ModelCall:
    transcript, source = attempt.state.need_transcript("compact"), source_of(attempt.state)
    history, hint = source.messages, source.hint
    instruction = summary_instruction(hint.text if hint is not None and hint.available else None, hooked)
    state = ChatState(control=attempt.state.control, transcript=replace(transcript, messages=history))
    prompt = build_prompt(state, instruction=instruction)
    cap = output_cap(model, history, instruction)
    request, digests = make_request(attempt, model, prompt, tools=tools, max_output=cap)
    return prepare(attempt, _CONCLUSIONS, model, request, digests)


def _show_failure(attempt: Attempt, outcome: Failed) -> None:
    """Show those who watch what became of the summary, as the result that it would have had."""
    source = "manual" if attempt.state.control.compaction == "requested" else "automatic"
    output: Json = {"source": source, "error": outcome.error.message}
    part = LiveResult(name="chat_summarized", output=output, is_error=True)
    attempt.runtime.parts.add(attempt.episode, part)


def _failed(call: ModelCall, error: ProviderError) -> Outcome:
    return call.attempt.failed(error.error, call.report())


def _cancelled(call: ModelCall) -> Outcome | None:
    """Return what the call cost; None where nothing may be written."""
    told = (Cause.USER_INTERRUPT, Cause.SHUTDOWN, Cause.HISTORY_CHANGED)
    return Stopped(report=call.report()) if call.attempt.scope.cause in told else None


def _summary(call: ModelCall) -> Summarised:
    attempt, request = call.attempt, call.request
    reason = call.assembler.finish.reason if call.assembler.finish is not None else "unknown"
    text = summary_of(call.assembler.parts(MessageId("0.0")), reason, call.model.provider)
    shown = summarised(text)
    declared = attempt.declared
    fixed = (*request.system, *(f"{tool.name}{tool.description}{tool.schema}" for tool in declared.tools))
    control = attempt.state.control
    return Summarised(
        source=source_of(attempt.state),
        manual=control.compaction == "requested",
        summary=Content(shown),
        details=Content(details_of(attempt.state, attempt.policy, text, shown=shown, fixed=fixed)),
        context_tokens=control.indexes.context_tokens,
        report=call.report(),
    )


_CONCLUSIONS: Final = Conclusions(answered=_summary, failed=_failed, cancelled=_cancelled, shown=summary_parts)
