"""From what a log keeps of models, tools and context sources back to what they gave. Pure.

Of an answer its parts and its end, of a failure the classified error, of a call its result. What a log does not keep
(how an answer was cut into deltas, what came of one that was tried again) is made up so that the same is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from events.content import Content, Json
from events.ids import part_of
from events.messages import Message, Step, Usage
from events.parts import ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart
from events.records import ErrorInfo
from generation.error_texts import given_up, stream_message
from generation.errors import ClassifiedError, ErrorKind
from generation.providers.contract import (
    CallEnd,
    Finish,
    ProviderResult,
    ReasoningDelta,
    ReasoningEnd,
    SourceFound,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from generation.tools.output import Answer, CallResult

_JUDGED: Final = "finish reason: "
"""How the detail of an error begins that the engine gave itself: of a stream that ended well by its own account."""


_GIVEN_UP: Final = given_up("", 0).partition("0")[0]
"""How the sentence begins that is added to the error of a turn that was tried often enough."""


def value_of(content: Content | None) -> Json:
    """Return what a content says; None where there is none."""
    return None if content is None else content.value


def text_of(content: Content | None) -> str | None:
    """Return what a content says that is a text; None where there is none."""
    return None if content is None else content.text


def parts_of(message: Message | None) -> Iterator[StreamPart]:
    """Yield the parts of a stream that an answer is made of, each block at once."""
    ids: dict[int, str] = {}
    for block, part in enumerate(message.parts if message is not None else ()):
        match part:
            case TextPart():
                yield TextDelta(block=block, text=part.text.text)
                yield TextEnd(block=block, metadata=value_of(part.metadata))
            case ReasoningPart():
                if part.text.text:
                    yield ReasoningDelta(block=block, text=part.text.text)
                yield ReasoningEnd(block=block, metadata=value_of(part.metadata), redacted=part.redacted)
            case ToolCallPart():
                ids[block] = part.provider_call_id
                yield CallEnd(
                    block=block,
                    id=part.provider_call_id,
                    name=part.name,
                    arguments=part.arguments.text,
                    metadata=value_of(part.metadata),
                    provider_executed=part.runner == "provider",
                )
            case ToolResultPart():
                yield ProviderResult(
                    block=block,
                    call_id=ids.get(part_of(part.call), ""),
                    output=value_of(part.output),
                    is_error=part.is_error,
                    metadata=value_of(part.metadata),
                )
            case SourcePart():
                yield SourceFound(block=block, source_id=part.source_id, url=part.url.text, title=text_of(part.title))
            case _:
                raise ValueError(f"an answer with a part {part.kind}")


def finish_of(step: Step, *, explanation: str | None = None) -> Finish:
    """Return the end of a stream that was whole."""
    return Finish(
        reason=step.finish_reason,
        usage=None if step.unmetered else step.usage,
        response_id=step.response_id,
        metadata=value_of(step.metadata),
        context_tokens=step.context_tokens,
        explanation=explanation,
    )


def told_of(step: Step | None) -> Iterator[StreamPart | UsageSoFar]:
    """Yield what was known of a stream that was cut, beside its parts.

    Args:
        step: What was recorded of it; None where nothing was.
    """
    if step is None:
        return
    if step.finish_reason != "unknown":
        yield finish_of(step)
    elif step.unmetered or step.usage != Usage():
        # With no counts it says that the service had taken the call.
        yield UsageSoFar(usage=step.usage, response_id=step.response_id, context_tokens=step.context_tokens)


def judged(error: ErrorInfo) -> bool:
    """Whether the engine itself found that an answer is none: then it must find so again."""
    return (text_of(error.detail) or "").startswith(_JUDGED)


def called_alone(error: ErrorInfo) -> bool:
    """Whether a summary had no text: of one that had nothing at all the engine says that there was no output."""
    return _alone(error) == stream_message("no_summary", error.provider or "")


def thought_alone(error: ErrorInfo) -> bool:
    """Whether a summary had no text, but reasoning: nothing else of it says so."""
    return _alone(error) == stream_message("summary_truncated", error.provider or "")


def _alone(error: ErrorInfo) -> str:
    """Return a message without the sentence that says how many attempts there were."""
    message = error.message.text
    return message.rpartition(_GIVEN_UP)[0] or message


def classified(error: ErrorInfo, *, final: bool = False) -> ClassifiedError:
    """Return an error as it was classified.

    Args:
        error: What was recorded.
        final: Whether the turn failed by it; where it was worth another try, a last sentence says how many there were.
    """
    return ClassifiedError(
        kind=cast("ErrorKind", error.kind),
        message=_alone(error) if final and error.retryable else error.message.text,
        detail=text_of(error.detail),
        provider=error.provider,
        retryable=error.retryable,
        status_code=error.status_code,
        retry_after_us=error.retry_after_us,
        chain_broken=error.chain_broken,
    )


def result_of(part: ToolResultPart, fault: ClassifiedError | None = None) -> CallResult:
    """Return the result of a call as its tool gave it.

    Args:
        part: What was recorded.
        fault: Why the turn ended with it.
    """
    answer = Answer(
        value_of(part.output),
        is_error=part.is_error,
        repaired=part.repaired,
        media=part.media,
        attachments=part.attachments,
    )
    return CallResult(
        key=part.call,
        name="",
        answer=answer,
        started_at=part.started_at,
        ended_at=part.ended_at,
        reason=part.reason,
        rewritten=text_of(part.rewritten),
        context=text_of(part.context),
        fault=fault,
    )
