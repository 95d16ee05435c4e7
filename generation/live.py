"""Live parts of a model's stream: what of a stream part those who watch are shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from events.parts import FilePart
from generation.parts import (
    LiveCall,
    LiveCallDelta,
    LiveFile,
    LivePart,
    LiveReasoning,
    LiveResult,
    LiveSource,
    LiveSummary,
    LiveText,
)
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    ProviderResult,
    ReasoningDelta,
    SourceFound,
    StreamPart,
    TextDelta,
)


def live_files(files: Iterable[FilePart]) -> tuple[LiveFile, ...]:
    """Return what to show of files that go with a result: not their bytes."""
    return tuple(
        LiveFile(
            media_type=file.media_type,
            size=_decoded(file.data.size),
            name=file.name.text if file.name is not None else None,
        )
        for file in files
    )


def _decoded(size: int) -> int:
    """Return about how many bytes so many characters of base64 stand for: padding counts."""
    return size * 3 // 4


def live_parts(part: StreamPart) -> tuple[LivePart, ...]:
    """Return what to show of a part that the assembler has cleaned: none for mere ends."""
    match part:
        case TextDelta(block=block, text=text):
            return (LiveText(block=block, text=text),)
        case ReasoningDelta(block=block, text=text):
            return (LiveReasoning(block=block, text=text),)
        case CallDelta(block=block, text=text, name=name):
            return (LiveCallDelta(block=block, text=text, name=name),)
        case CallEnd(block=block, name=name, arguments=arguments, provider_executed=provider_executed):
            return (LiveCall(block=block, name=name, arguments=arguments, provider_executed=provider_executed),)
        case ProviderResult(block=block, name=name, output=output, is_error=is_error):
            return (LiveResult(name=name, output=output, is_error=is_error, block=block),)
        case SourceFound(block=block, source_id=source_id, url=url, title=title):
            return (LiveSource(block=block, source_id=source_id, url=url, title=title),)
        case _:
            return ()


def summary_parts(part: StreamPart) -> tuple[LivePart, ...]:
    """Return what to show of a part of a summary: its text alone."""
    return (LiveSummary(block=part.block, text=part.text),) if isinstance(part, TextDelta) else ()
