"""What a compaction asks for and what it records: output cap, judged summary, details for clients. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from chatstate.handlers.worker import trailing_users
from events.content import Content, Json
from events.messages import FinishReason
from events.parts import Part, ReasoningPart, TextPart
from events.paths import contents
from events.records import ModelPolicy, Policy
from events.state import ChatState
from events.transcript import Messages
from generation.error_texts import finish_detail, stream_message
from generation.errors import ClassifiedError, ProviderError
from generation.estimate import since_answer, size_of, tokens_of
from generation.reading import compaction_threshold, strictest

USUAL_OUTPUT: Final = 16_384
"""Tokens of output that a model is taken to be granted where its configuration does not say."""


def to_summarise(messages: Messages) -> Messages:
    """Return history without its trailing unanswered user messages: they are kept verbatim, not summarised."""
    trailing = trailing_users(messages)
    position = messages.find(trailing[0].id) if trailing else None
    return messages if position is None else messages.before(position)


class Source(Struct, frozen=True):
    """What a summary is made of: the messages that it stands for, and what its user asked of it."""

    messages: Messages
    hint: Content | None

    def whole_in(self, state: ChatState) -> bool:
        """Whether all that was read for the summary can still be read in a later state of the same history.

        What was erased meanwhile must not come back as a summary, as little as in a title: only erasing changes what
        stands under one version of history.
        """
        return _erased_in(source_of(state)) == _erased_in(self)


def source_of(state: ChatState) -> Source:
    """Return what a summary of a chat is made of."""
    transcript = state.need_transcript("compact")
    return Source(to_summarise(transcript.messages), transcript.hint)


def _erased_in(source: Source) -> int:
    messages = sum(content.erased for item in source.messages for _, content in contents(item.message))
    return messages + (source.hint is not None and source.hint.erased)


def output_cap(model: ModelPolicy, messages: Messages, instruction: str) -> int | None:
    """Return the most tokens that a summary may take: the configured ones, or what the context has left.

    Args:
        model: The model that writes the summary.
        messages: What is summarised.
        instruction: The text that asks for the summary.

    Returns:
        None where nothing limits it: the provider's own limit holds.
    """
    limit = model.context_limit
    if limit is None or limit <= 0:
        return model.max_output
    taken, later = since_answer(messages)
    room = limit - taken - tokens_of(len(instruction.encode())) - tokens_of(size_of(later))
    return room if 0 < room < (model.max_output or USUAL_OUTPUT) else model.max_output


def summary_of(parts: Iterable[Part], reason: FinishReason, provider: str) -> str:
    """Return the text of a summary: its blocks, trimmed and joined by one space.

    Args:
        parts: What the model gave.
        reason: Why it stopped.
        provider: The provider's name, for the error.

    Raises:
        ProviderError: There is no text: the model was cut at its output cap, or had nothing to say. Tried again, unless
            it was the cap that cut it: the next try would be cut as well.
    """
    given = tuple(parts)
    texts = (part.text.text.strip() for part in given if isinstance(part, TextPart))
    if text := " ".join(each for each in texts if each):
        return text
    capped = reason == "length"
    truncated = capped or any(isinstance(part, ReasoningPart) for part in given)
    raise ProviderError(
        ClassifiedError(
            kind="generic",
            message=stream_message("summary_truncated" if truncated else "no_summary", provider),
            detail=finish_detail(reason),
            provider=provider,
            retryable=not capped,
        )
    )


def details_of(state: ChatState, policy: Policy, summary: str, *, shown: str, fixed: Sequence[str] = ()) -> Json:
    """Return what clients are told of a compaction, as the result that stands in its boundary.

    Args:
        state: The chat before it.
        policy: The policy that it ran under.
        summary: The summary as the model gave it,
        shown: and as prompts have it.
        fixed: What else stands in every prompt: system texts and declarations of tools.
    """
    control = state.control
    tokens, measure = control.indexes.context_tokens, strictest(policy) or policy.model
    limit = measure.context_limit if measure is not None else None
    again = (item.message for item in trailing_users(state.need_transcript("compact").messages))
    after = len(shown.encode()) + size_of(again) + sum(len(text.encode()) for text in fixed)
    return {
        "source": "manual" if control.compaction == "requested" else "automatic",
        "summary": summary,
        "threshold_percent": measure.compaction_threshold if measure is not None else None,
        "threshold_tokens": compaction_threshold(policy),
        "usage_percent": round(tokens * 100 / limit, 2) if limit else None,
        "context_tokens": tokens,
        "context_limit_tokens": limit,
        "estimated_context_tokens": tokens_of(after),
    }
