"""From what a log keeps of models, tools and context sources back to what they gave. Pure.

Of an answer its parts and its end, of a failure the classified error, of a call its result. What a log does not keep
(how an answer was cut into deltas, what came of one that was tried again) is made up so that the same is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, TypeVar, cast

from events.content import Content, Json
from events.ids import part_of
from events.messages import Message, Step, Usage
from events.parts import ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart
from events.records import ErrorInfo
from generation.error_texts import finish_detail, given_up, stream_message
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

_V = TypeVar("_V")
_Repaired: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart

_GIVEN_UP: Final = given_up("", 0).partition("0")[0]
"""How the sentence begins that is added to the error of a turn that was tried often enough."""


def value_of(content: Content | None) -> Json:
    """Return what a content says; None where there is none."""
    return None if content is None else content.value


def text_of(content: Content | None) -> str | None:
    """Return what a content says that is a text; None where there is none."""
    return None if content is None else content.text


def parts_of(message: Message | None) -> Iterator[StreamPart]:
    """Yield the parts of a stream that an answer is made of, each block at once.

    What was repaired is broken again: that it was is a matter of later prompts, which hand no signature of it back.
    """
    ids: dict[int, str] = {}
    for block, part in enumerate(message.parts if message is not None else ()):
        match part:
            case TextPart():
                yield TextDelta(block=block, text=_broken(part, "text", part.text.text))
                yield TextEnd(block=block, metadata=_broken(part, "metadata", value_of(part.metadata)))
            case ReasoningPart():
                if part.text.text:
                    yield ReasoningDelta(block=block, text=_broken(part, "text", part.text.text))
                metadata = _broken(part, "metadata", value_of(part.metadata))
                yield ReasoningEnd(block=block, metadata=metadata, redacted=part.redacted)
            case ToolCallPart():
                ids[block] = part.provider_call_id
                yield CallEnd(
                    block=block,
                    id=part.provider_call_id,
                    name=part.name,
                    arguments=_broken(part, "arguments", part.arguments.text),
                    metadata=_broken(part, "metadata", value_of(part.metadata)),
                    provider_executed=part.runner == "provider",
                )
            case ToolResultPart():
                yield ProviderResult(
                    block=block,
                    call_id=ids.get(part_of(part.call), ""),
                    output=_broken(part, "output", value_of(part.output)),
                    is_error=part.is_error,
                    metadata=_broken(part, "metadata", value_of(part.metadata)),
                )
            case SourcePart():
                yield SourceFound(block=block, source_id=part.source_id, url=part.url.text, title=text_of(part.title))
            case _:
                raise ValueError(f"an answer with a part {part.kind}")


_REPLACED: Final = "\ufffd"
_LONE: Final = "\udc00"
"""What a repair puts in the place of half a surrogate pair, and such a half."""


def _broken(part: _Repaired, field: str, value: _V) -> _V:
    """Return a field of a part as it may have come, where it was repaired."""
    path = f"$.{field}"
    return _torn(value) if any(each.startswith(path) for each in part.repaired) else value


def _torn(value: Any) -> Any:
    match value:
        case str():
            return value.replace(_REPLACED, _LONE)
        case list():
            return [_torn(each) for each in value]
        case dict():
            return {key: _torn(each) for key, each in value.items()}
        case _:
            return value


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
    return (text_of(error.detail) or "").startswith(finish_detail(""))


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
