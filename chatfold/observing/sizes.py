"""How large requests and results are, for metrics. Pure."""

from __future__ import annotations

from events.content import Json
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


def prompt_size(request: ModelRequest) -> int:
    """Return the characters of a request's texts, and of its files as they are sent: about its bytes, and cheap."""
    return sum(map(len, request.system)) + sum(_size(part) for message in request.messages for part in message.parts)


def _size(part: PromptPart) -> int:
    match part:
        case PromptText(text=text) | PromptReasoning(text=text):
            return len(text)
        case PromptResult(text=text, media=media):
            return len(text) + sum(len(file.data) for file in media)
        case PromptCall(arguments=arguments):
            return len(arguments)
        case PromptFile(data=data):
            return len(data)


def result_size(answer: Answer | None) -> int:
    """Return the bytes of a tool's result: of its text or of its error's, of other values as JSON, and of its media.

    Media count as they are stored, in base64. Nothing is 0 bytes.
    """
    if answer is None:
        return 0
    return _json_size(answer.output) + sum(file.data.size for file in (*answer.media, *answer.attachments))


def _json_size(value: Json) -> int:
    if value is None:
        return 0
    return len(value.encode()) if isinstance(value, str) else len(encode_json(value))
