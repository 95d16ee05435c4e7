"""How a stream ended, judged: an answer, or a failure although the call itself went well. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from events.messages import FinishReason
from events.parts import Part, TextPart, ToolCallPart
from generation.error_texts import cut, finish_detail, message_for, redact, stream_message
from generation.errors import ClassifiedError, ProviderError
from generation.providers.contract import Finish


def require_output(parts: Sequence[Part], reason: FinishReason, provider: str) -> None:
    """Refuse an answer that says nothing and does not say why.

    A model that stopped by itself or at its output limit may answer nothing; one that announced calls, or gave no
    reason, must not. Reasoning alone is no output.

    Args:
        parts: The answer's parts.
        reason: Why the model stopped.
        provider: The provider's name, for the error.

    Raises:
        ProviderError: Retryable: there is no output.
    """
    if reason not in {"unknown", "tool_calls"}:
        return
    if any(isinstance(part, ToolCallPart) or _says_something(part) for part in parts):
        return
    raise ProviderError(
        ClassifiedError(
            kind="generic",
            message=stream_message("no_output", provider),
            detail=finish_detail(reason),
            provider=provider,
            retryable=True,
        )
    )


def _says_something(part: Part) -> bool:
    if not isinstance(part, TextPart):
        return False
    value = part.text.value if part.text.available else "erased"
    return isinstance(value, str) and bool(value.strip())


def require_consent(finish: Finish, provider: str) -> None:
    """Refuse an answer that its provider withheld.

    Args:
        finish: The stream's last part.
        provider: The provider's name, for the error.

    Raises:
        ProviderError: Of kind content_filter, not retryable; the provider's explanation is its message.
    """
    if not is_withheld(finish):
        return
    explanation = cut(redact(finish.explanation)) if finish.explanation else ""
    raise ProviderError(
        ClassifiedError(
            kind="content_filter",
            message=explanation or message_for("content_filter", provider, retryable=False, status=None),
            detail=finish_detail(finish.reason),
            provider=provider,
        )
    )


def is_withheld(finish: Finish) -> bool:
    """Whether the provider withheld the answer: then nothing of what it showed before is kept."""
    return finish.reason in {"refusal", "content_filter"}


def too_silent(provider: str, limit: float, *, begun: bool) -> ProviderError:
    """Return the error of a call that said nothing for too long.

    Args:
        provider: The provider's name.
        limit: How long that was, in seconds.
        begun: Whether something of the answer had come before.
    """
    return ProviderError(
        ClassifiedError(
            kind="stream_silence_timeout",
            message=stream_message("silent" if begun else "not_begun", provider),
            detail=f"nothing came for {limit:g} seconds",
            provider=provider,
            retryable=True,
        )
    )
