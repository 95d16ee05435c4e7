"""Requests and answers as the conventions for generative AI write them into attributes: JSON texts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from events.content import Content, Json
from events.messages import FinishReason
from events.parts import FilePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.values import encode_json
from generation.prompt_types import (
    ModelRequest,
    PromptCall,
    PromptFile,
    PromptPart,
    PromptReasoning,
    PromptResult,
    PromptText,
)
from generation.tools.output import Answer


def input_messages(request: ModelRequest) -> str:
    """Return the messages of a request."""
    return _text(
        [
            {"role": message.role, "parts": [part for each in message.parts for part in _given(each)]}
            for message in request.messages
        ]
    )


def system_instructions(request: ModelRequest) -> str:
    """Return the system texts of a request."""
    return _text([{"type": "text", "content": text} for text in request.system])


def tool_definitions(request: ModelRequest) -> str:
    """Return the tools that a request declares, then those that the service runs."""
    functions: list[Json] = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema}
        for tool in request.tools
    ]
    native: list[Json] = [{"type": tool.name, "name": tool.name} for tool in request.native]
    return _text(functions + native)


def output_messages(parts: Iterable[Part], reason: FinishReason) -> str:
    """Return an answer."""
    given = [each for part in parts for each in _answered(part)]
    return _text([{"role": "assistant", "parts": given, "finish_reason": reason}])


def tool_result(answer: Answer) -> str:
    """Return what a tool gave, without its files."""
    return _text(answer.output)


def _given(part: PromptPart) -> list[Json]:
    match part:
        case PromptText(text=text):
            return [{"type": "text", "content": text}]
        case PromptReasoning(text=text):
            return [{"type": "reasoning", "content": text}]
        case PromptCall(id=identity, name=name, arguments=arguments):
            return [{"type": "tool_call", "id": identity, "name": name, "arguments": arguments}]
        case PromptResult(id=identity, text=text, media=media):
            files = [_blob(file.media_type, file.data) for file in media]
            return [{"type": "tool_call_response", "id": identity, "response": text}, *files]
        case PromptFile(media_type=media_type, data=data):
            return [_blob(media_type, data)]


def _answered(part: Part) -> list[Json]:
    match part:
        case TextPart(text=text):
            return [{"type": "text", "content": _value(text)}]
        case ReasoningPart(text=text):
            return [{"type": "reasoning", "content": _value(text)}]
        case ToolCallPart(provider_call_id=identity, name=name, arguments=arguments):
            return [{"type": "tool_call", "id": identity, "name": name, "arguments": _value(arguments)}]
        case ToolResultPart(call=call, output=output):
            return [{"type": "tool_call_response", "id": str(call), "response": _value(output)}]
        case FilePart(media_type=media_type, data=data):
            return [_blob(media_type, _value(data))]
        case _:
            return []


def _blob(media_type: str, data: Json) -> Json:
    return {"type": "blob", "mime_type": media_type, "modality": media_type.partition("/")[0], "content": data}


def _value(content: Content | None) -> Json:
    return content.value if content is not None and content.available else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else encode_json(value).decode()
