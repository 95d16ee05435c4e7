"""What hooks say of an effect of the model: a hint for a summary, a word after it, and whether a finished turn goes on.

A hook that cannot be asked after an effect does not undo it: what it gave is committed, and the turn fails in the same
append.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec.structs import replace

from events.content import Content, Json
from events.ids import MessageId
from events.messages import Message
from events.parts import HookContextPart, TextPart, ToolCallPart
from generation.actions.attempt import Attempt
from generation.cancellation import Cause
from generation.errors import HookFailed, ProviderError
from generation.hooks.contract import HookEvent
from generation.outcomes import Answered, Summarised
from generation.plans import Outcome

_OF_SUMMARIES: Final = frozenset[HookEvent](("pre_compact", "post_compact"))


async def hint_of_hooks(attempt: Attempt) -> str | None:
    """Ask hooks what matters for the summary that is to be written.

    Raises:
        ProviderError: Of kind hook_dispatch_failed: nothing may be summarised.
    """
    try:
        return await _ask(attempt, "pre_compact", {"manual": _manual(attempt)})
    except HookFailed as failure:
        raise ProviderError(failure.classified(on_request=_manual(attempt))) from failure


async def after_effect(attempt: Attempt, outcome: Outcome) -> Outcome:
    """Ask hooks about an effect that has come to its end; what it gave is kept whatever they say.

    Where the effect is cancelled meanwhile, its outcome stands without them.
    """
    asked = attempt.runtime.hooks
    try:
        if isinstance(outcome, Summarised) and asked.at("post_compact"):
            return await _after_summary(attempt, outcome)
        if isinstance(outcome, Answered) and asked.at("stop"):
            return await _after_answer(attempt, outcome)
    except HookFailed as failure:
        on_request = isinstance(outcome, Summarised) and outcome.manual
        return replace(outcome, error=failure.classified(on_request=on_request))  # type: ignore[type-var]  # one of these two
    except asyncio.CancelledError:
        if attempt.scope.cause in (None, Cause.LEASE_LOST):
            raise
    return outcome


async def _after_summary(attempt: Attempt, outcome: Summarised) -> Outcome:
    shown = outcome.summary.text
    context = await _ask(attempt, "post_compact", {"manual": outcome.manual, "summary": shown})
    return outcome if context is None else replace(outcome, summary=Content(f"{shown}\n\n{context}"))


async def _after_answer(attempt: Attempt, outcome: Answered) -> Outcome:
    """Ask at the end of a turn, which is an answer without calls: a context lets it go on, once in a turn."""
    parts = outcome.parts(MessageId("0.0"))
    calls = any(isinstance(part, ToolCallPart) and part.runner != "provider" for part in parts)
    if outcome.interrupted or calls or not parts:
        return outcome
    nudged = attempt.state.control.indexes.nudged
    text = "".join(part.text.text for part in parts if isinstance(part, TextPart))
    context = await _ask(attempt, "stop", {"text": text, "nudged": nudged})
    if context is None or nudged:
        return outcome
    nudge = HookContextPart(event="stop", text=Content(context))
    return replace(outcome, more=(Message(role="user", visibility="model", parts=(nudge,)),))


async def _ask(attempt: Attempt, event: HookEvent, facts: dict[str, Json]) -> str | None:
    control = attempt.state.control
    place = str(control.history_version)
    if event in _OF_SUMMARIES:
        # A summary that failed leaves history as it was. What a person asks for then counts its starts anew: those
        # before it tell it from the one that failed, and stay the same where it is repeated.
        place = f"{place}.{control.attempt - control.model_attempts}"
    verdict = await attempt.runtime.hooks.ask(event, attempt.chat, place, facts)
    return verdict.context


def _manual(attempt: Attempt) -> bool:
    return attempt.state.control.compaction == "requested"
