"""Estimates of what a conversation takes of a model's context, where no service has measured it. Pure.

Sizes alone are read: no content needs to be loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from events.content import Content
from events.draft import after_boundary
from events.ids import MessageId
from events.messages import Message, Step
from events.parts import FilePart, ReasoningPart, SourcePart, TextPart, ToolCallPart, ToolResultPart
from events.transcript import Messages
from generation.budget import MIN_BUDGET
from generation.providers.files import is_text

BYTES_PER_TOKEN: Final = 3
"""Bytes of text that count as one token."""

FILE_BYTES: Final = 4_800
"""What a file counts for that is no text: an image takes about 1,600 tokens, however many bytes it has."""


def tokens_of(size: int) -> int:
    """Return the tokens that ``size`` bytes count for, rounded up."""
    return -(-size // BYTES_PER_TOKEN)


def size_of(messages: Iterable[Message]) -> int:
    """Return the bytes that some messages take in a prompt: reasoning is not counted, as most of it is not sent."""
    return sum(_part_size(part) for message in messages for part in message.parts)


def _part_size(part: object) -> int:
    match part:
        case ReasoningPart() | SourcePart():
            return 0
        case FilePart(media_type=kind, data=data):
            return data.size * 3 // 4 if is_text(kind) else FILE_BYTES
        case TextPart(text=text):
            return text.size
        case ToolCallPart(name=name, arguments=arguments):
            return len(name) + arguments.size
        case ToolResultPart(output=output, media=media, context=context, rewritten=rewritten):
            said = sum(content.size for content in (output, context) if content is not None)
            # Of other arguments the model is shown no more than this.
            changed = min(rewritten.size, MIN_BUDGET) if rewritten is not None else 0
            return said + changed + sum(map(_part_size, media))
        case _:
            contents = (getattr(part, name, None) for name in ("name", "path", "text"))
            return sum(content.size for content in contents if isinstance(content, Content))


def _taken(step: Step) -> int:
    """Return the tokens that an answer and its prompt took together; 0 where no service measured them.

    Of an answer of several requests the usage is that of all of them, and each prompt but the first holds the answer so
    far: the newest prompt counts. What it holds of the answer counts twice, so the estimate is rather too large.
    """
    usage = step.usage
    if step.context_tokens is not None:
        return step.context_tokens + usage.output
    return usage.input + usage.cache_read + usage.cache_write + usage.output


def since_answer(messages: Messages) -> tuple[int, list[Message]]:
    """Return what the newest measured answer and its prompt took, and what models read that came after it.

    0 tokens where none of the conversation was measured: then all that the next prompt holds of it is returned.
    """
    later: list[Message] = []
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at].message
        if message.step is not None and message.role == "assistant" and (taken := _taken(message.step)):
            return taken, later[::-1]
        if message.visibility != "user" and message.role != "system":
            later.append(message)
        if message.boundary is not None and message.role == "user":
            break
    return 0, later[::-1]


def uncompacted_tokens(messages: Messages, boundary: MessageId) -> int:
    """Estimate what the next prompt takes once a boundary is taken back.

    That is what the last answer before it was measured at, and the bytes of all that came after that answer.
    """
    position = messages.find(boundary)
    if position is None:
        return 0
    taken, later = since_answer(messages.before(position))
    came = [item.message for item in after_boundary(messages, position)]
    read = [message for message in came if message.visibility != "user" and message.role != "system"]
    return taken + tokens_of(size_of([*later, *read]))
