"""Logs that were redacted: words of the engine's own are put back where a rerun reads them, each by its size. Pure.

All contents of such a log are made up, and as long as what was said. What models, tools and users gave may well be made
up; but of a summary, of a failure and of its detail the engine wrote a part itself, by which the rest of it is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from msgspec.structs import replace

from chatfold.rerunning.tools import UNRECORDED
from events import vocabulary as v
from events.content import Content
from events.control import Control
from events.envelope import Recorded
from events.messages import FinishReason, Message, Step
from events.parts import ToolResultPart
from events.records import MODEL_KINDS, AttemptKind, ErrorInfo
from events.replay import replay
from generation.error_texts import StreamFault, finish_detail, given_up, stream_message
from generation.prompt_texts import summarised

_SUMMARY: Final = 1
"""The place of the summary among the details of a compaction."""
_PARAGRAPH: Final = "\n\n"
"""What stands between a summary and what a hook added to it."""
_TOO_LATE: Final = "The context source gave nothing in 60 seconds."
"""What is said of a source that did not answer. How long it had is not known any more, and the log has the times."""


def legible(log: Sequence[Recorded]) -> list[Recorded]:
    """Return a redacted log with the engine's own words in it; facts and sizes stay as they are."""
    behind = (*log[1:], None)
    return [
        _legible(step.recorded, step.before.control, next_) for step, next_ in zip(replay(log), behind, strict=True)
    ]


def _legible(recorded: Recorded, before: Control, behind: Recorded | None) -> Recorded:
    event = recorded.event
    match event:
        case v.ToolResultRecorded() if _apart(behind) and event.result.is_error:
            return Recorded(recorded.envelope, replace(event, result=_unrecorded(event.result)))
        case v.CompactionCommitted():
            return Recorded(recorded.envelope, _compaction(event))
        case v.RetryScheduled() | v.TurnFailed() if _told(event.error):
            kind = before.running.kind if before.running is not None else None
            attempts = 0
            if isinstance(event, v.TurnFailed) and event.error.retryable:
                attempts = max(1, before.model_attempts if kind in MODEL_KINDS else before.attempt)
            error = _error(event.error, kind, _step(event), attempts)
            return Recorded(recorded.envelope, replace(event, error=error))
        case _:
            return recorded


def made_up(size: int) -> str:
    """Return a text of so many bytes, in which nothing looks like a secret."""
    return ("x, " * size)[: max(0, size - 1)] + "x" * (size > 0)


def _apart(behind: Recorded | None) -> bool:
    """Whether a batch is committed in an append of its own behind its last result: that one could not be recorded."""
    return behind is not None and isinstance(behind.event, v.StepCommitted) and behind.envelope.index == 0


def _unrecorded(result: ToolResultPart) -> ToolResultPart:
    output = result.output
    more = -1 if output is None else output.size - len(UNRECORDED)
    return result if more < 0 else replace(result, output=Content(UNRECORDED + made_up(more)))


def _told(error: ErrorInfo) -> bool:
    return error.message.available and (error.detail is None or error.detail.available)


def _step(event: v.RetryScheduled | v.TurnFailed) -> Step | None:
    """Return what is known of the call that failed."""
    added: tuple[Message, ...] = getattr(event, "added", ())
    kept = next((message.step for message in added if message.step is not None), None)
    return kept if kept is not None else event.report.step if event.report is not None else None


def _error(error: ErrorInfo, kind: AttemptKind | None, step: Step | None, attempts: int) -> ErrorInfo:
    """Return an error whose message ends with the number of attempts after which it was given up, where it did."""
    last = given_up("", attempts) if attempts else ""
    size = error.message.size - len(last)
    detail = error.detail
    if detail is not None and (reason := _reason(detail, step)) is not None:
        detail = Content(finish_detail(reason))
    said = _judged(size, error.provider or "") if detail is not error.detail else None
    if kind == "context" and error.kind == "timeout":
        said = _TOO_LATE
    message = error.message if said is None and not last else Content((said or made_up(size)) + last)
    return replace(error, message=message, detail=detail)


def _reason(detail: Content, step: Step | None) -> FinishReason | None:
    """Return the reason that a detail names, where the engine itself found that an answer is none."""
    named = [reason for reason in get_args(FinishReason) if len(finish_detail(reason)) == detail.size]
    known = step.finish_reason if step is not None else "unknown"
    return known if known in named else None


def _judged(size: int, provider: str) -> str | None:
    """Return what the engine says of such an answer; None where its provider explained itself."""
    texts = (stream_message(fault, provider) for fault in get_args(StreamFault))
    return next((text for text in texts if len(text.encode()) == size), None)


def _compaction(event: v.CompactionCommitted) -> v.CompactionCommitted:
    shown, details = event.added[0].parts[0], _details(event)
    size = getattr(shown, "text", Content("")).size - len(summarised("").encode())
    if details is None or size < 1:
        return event
    summary, more = _summary(size, details)
    text = summarised(summary) + (_PARAGRAPH + made_up(more) if more else "")
    first = replace(event.added[0], parts=(replace(shown, text=Content(text)),))
    rest = (_with_details(message, Content({"summary": summary})) for message in event.added[1:])
    return replace(event, added=(first, *rest))


def _summary(shown: int, told: int) -> tuple[str, int]:
    """Return a summary, and the size of what a hook added.

    Args:
        shown: Bytes of both, as messages have them.
        told: Bytes of the summary alone as details have it, in which JSON writes some characters with one byte more.
    """
    if shown <= told:
        quotes = min(told - shown, shown)
        return '"' * quotes + "x" * (shown - quotes), 0
    more = max(1, shown - told - len(_PARAGRAPH))
    size = shown - more - len(_PARAGRAPH)
    return '"' * max(0, told - size) + "x" * (size - max(0, told - size)), more


def _details(event: v.CompactionCommitted) -> int | None:
    """Return the bytes of the summary in a compaction's details; None where these are not at hand.

    Names of fields are made up too, and stand in their order.
    """
    values = [list(found.value.values()) for found in _outputs(event) if isinstance(found.value, dict)]
    summary = values[0][_SUMMARY] if values and len(values[0]) > _SUMMARY else None
    return len(summary.encode()) if isinstance(summary, str) else None


def _outputs(event: v.CompactionCommitted) -> list[Content]:
    parts = (part for message in event.added for part in message.parts if isinstance(part, ToolResultPart))
    return [part.output for part in parts if part.output is not None and part.output.available]


def _with_details(message: Message, details: Content) -> Message:
    parts = (replace(part, output=details) if isinstance(part, ToolResultPart) else part for part in message.parts)
    return replace(message, parts=tuple(parts))
