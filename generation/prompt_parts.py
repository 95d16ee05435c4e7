"""Conversion of single parts to their neutral form. Pure.

Content that was erased or not loaded becomes a short placeholder; where a placeholder would falsify (reasoning with
its signature) the part is left out whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from events.content import Content, Json
from events.cutting import truncate
from events.messages import Step
from events.parts import (
    ContextFilePart,
    FilePart,
    FileReferencePart,
    HookContextPart,
    Part,
    ReasoningPart,
    SkillPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from events.reasons import REASON_TEXTS
from generation import prompt_texts
from generation.budget import MIN_BUDGET
from generation.prompt_ids import call_name
from generation.prompt_types import PromptCall, PromptFile, PromptPart, PromptReasoning, PromptResult, PromptText
from generation.repair import parse_object


def _encode(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def text_of(content: Content) -> str:
    """Return a content as text: itself, or JSON; a placeholder where it is not at hand."""
    if not content.available:
        return prompt_texts.UNAVAILABLE
    value = content.value
    return value if isinstance(value, str) else _encode(value)


def _metadata(content: Content | None) -> Json:
    return content.value if content is not None and content.available else None


def _text(text: str, metadata: Json = None) -> PromptText | None:
    return PromptText(text=text, metadata=metadata) if text.strip() else None


def user_part(part: Part) -> PromptPart | None:
    """Convert a part of a user message; None where it is not sent."""
    match part:
        case TextPart():
            return _text(text_of(part.text))
        case FilePart():
            return _file(part)
        case FileReferencePart():
            return _text(
                prompt_texts.file_reference(text_of(part.name), part.start_line, part.end_line, text_of(part.text))
            )
        case ContextFilePart():
            return _text(context_text([part]))
        case HookContextPart():
            return _text(text_of(part.text))
        case _:
            return None


def _file(part: FilePart) -> PromptFile | PromptText:
    if not part.data.available or not part.data.text:
        return PromptText(text=prompt_texts.unavailable_file(part.media_type))
    name = text_of(part.name) if part.name is not None and part.name.available else None
    return PromptFile(media_type=part.media_type, data=part.data.text, name=name)


def assistant_part(part: Part, step: Step | None) -> PromptPart | None:
    """Convert a part of an assistant message that is neither call nor result; None where it is not sent.

    Args:
        part: The part.
        step: The model call that made the message, which says whose reasoning it is.
    """
    match part:
        case TextPart():
            return _text(text_of(part.text), _metadata(part.metadata))
        case ReasoningPart():
            return _reasoning(part, step)
        case _:
            return None


def _reasoning(part: ReasoningPart, step: Step | None) -> PromptReasoning | None:
    if not part.text.available or (part.metadata is not None and not part.metadata.available):
        return None
    text, metadata = text_of(part.text), _metadata(part.metadata)
    if not text.strip() and metadata is None:
        return None
    if part.repaired and metadata is not None:
        return None  # a signature, or an item's id, is that of the text as it came
    return PromptReasoning(
        text=text,
        metadata=metadata,
        redacted=part.redacted,
        provider=step.provider if step is not None else None,
        model=step.model if step is not None else None,
    )


def call_part(part: ToolCallPart, assigned: str) -> PromptCall:
    """Convert a call that has the id ``assigned``.

    A name that no wire format takes becomes a legal one, arguments that are no JSON object become an empty one.
    """
    arguments = part.arguments.value if part.arguments.available else ""
    text = arguments if isinstance(arguments, str) else _encode(arguments)
    parsed = parse_object(text)
    if parsed is None:
        text = "{}"
    elif "\\u" in text:
        text = _encode(parsed)  # an escaped lone surrogate was repaired while parsing, and must not come back
    return PromptCall(
        id=assigned,
        name=call_name(part.name),
        arguments=text,
        metadata=_metadata(part.metadata),
        provider_executed=part.runner == "provider",
    )


def result_part(part: ToolResultPart | None, assigned: str, name: str) -> PromptResult:
    """Convert the result of the call ``assigned``; a call without one is answered by an error: none stays open.

    Args:
        part: The result.
        assigned: The id of its call in the prompt.
        name: The name of its call as the model wrote it.
    """
    name = call_name(name)
    if part is None:
        return PromptResult(id=assigned, name=name, text=prompt_texts.NO_RESULT, is_error=True)
    files = [_file(file) for file in part.media]
    media = tuple(file for file in files if isinstance(file, PromptFile))
    return PromptResult(
        id=assigned,
        name=name,
        text="\n\n".join([*_result_texts(part, media), *(file.text for file in files if isinstance(file, PromptText))]),
        is_error=part.is_error or part.reason is not None,
        metadata=_metadata(part.metadata),
        provider_executed=part.provider_executed,
        media=media,
    )


def _result_texts(part: ToolResultPart, media: tuple[PromptFile, ...]) -> list[str]:
    """Return what a result says, none of it blank."""
    if part.reason is not None:
        text = REASON_TEXTS[part.reason]
    else:
        text = text_of(part.output) if part.output is not None else ""
    if not text.strip():
        text = prompt_texts.FILES_ALONE if media else prompt_texts.NO_OUTPUT
    texts = [text]
    if part.rewritten is not None:
        texts.insert(0, prompt_texts.rewritten(truncate(text_of(part.rewritten), MIN_BUDGET)))
    if part.context is not None:
        texts.append(text_of(part.context))
    return texts


def skills_text(parts: Sequence[SkillPart]) -> str:
    """Return the index of one message's skills."""
    return prompt_texts.skills_block([(text_of(part.name), text_of(part.description).strip()) for part in parts])


def context_text(parts: Sequence[ContextFilePart]) -> str:
    """Return the workspace's context block of one message's context files."""
    os = next((part.os for part in parts if part.os), None)
    directory = next((text_of(part.directory) for part in parts if part.directory is not None), None)
    files = [
        prompt_texts.context_file(text_of(part.path), text_of(part.text), truncated=part.truncated) for part in parts
    ]
    return prompt_texts.context_block(os, directory, files)
