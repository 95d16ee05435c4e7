"""Small histories for the tests of prompts: messages written short, and the prompt that comes of them."""

from __future__ import annotations

from collections.abc import Sequence

from events.content import Content, Json
from events.ids import CallKey, MessageId
from events.messages import Message, Step
from events.parts import FilePart, Part, ReasoningPart, Runner, TextPart, ToolCallPart, ToolResultPart
from events.reasons import Reason
from events.state import ChatState, initial_state
from events.transcript import Messages, Transcript, TranscriptMessage
from generation.prompt import build_prompt
from generation.prompt_types import (
    PromptCall,
    PromptFile,
    PromptMessage,
    PromptPart,
    PromptReasoning,
    PromptResult,
    PromptText,
)

STEP = Step(provider="anthropic", model="m")


def text(value: str) -> TextPart:
    return TextPart(text=Content(value))


def thought(value: str, metadata: Json = None) -> ReasoningPart:
    return ReasoningPart(text=Content(value), metadata=Content(metadata) if metadata is not None else None)


def call(name: str = "t", arguments: str = "{}", *, id: str = "c", runner: Runner = "local") -> ToolCallPart:
    return ToolCallPart(name=name, arguments=Content(arguments), provider_call_id=id, runner=runner)


def file(media_type: str = "image/png", data: str = "aGVsbG8gd29ybGQ=", name: str | None = None) -> FilePart:
    return FilePart(media_type=media_type, data=Content(data), name=Content(name) if name is not None else None)


def result(
    key: str,
    output: Json = "done",
    *,
    reason: Reason | None = None,
    provider: bool = False,
    media: Sequence[FilePart] = (),
) -> ToolResultPart:
    return ToolResultPart(
        call=CallKey(key),
        media=tuple(media),
        output=Content(output) if reason is None else None,
        reason=reason,
        is_error=reason is not None,
        provider_executed=provider,
    )


def user(*parts: Part | str, **more: object) -> Message:
    return _message("user", parts, more)


def assistant(*parts: Part | str, **more: object) -> Message:
    return _message("assistant", parts, {"step": STEP, **more})


def tool(*parts: Part, **more: object) -> Message:
    return _message("tool", parts, more)


def system(*parts: Part | str, **more: object) -> Message:
    return _message("system", parts, more)


def _message(role: str, parts: Sequence[Part | str], more: dict[str, object]) -> Message:
    made = tuple(text(part) if isinstance(part, str) else part for part in parts)
    return Message(role=role, parts=made, **more)  # type: ignore[arg-type]


def state_of(messages: Sequence[Message]) -> ChatState:
    """Return a chat with these messages, the ids of which are 1.0, 2.0, ..."""
    items = [TranscriptMessage(MessageId(f"{at}.0"), message, at) for at, message in enumerate(messages, 1)]
    transcript = Transcript(messages=Messages(items), queued={}, results={}, arguments={}, policies={})
    return ChatState(control=initial_state().control, transcript=transcript)


def prompt_of(*messages: Message, instruction: str | None = None) -> tuple[PromptMessage, ...]:
    """Return the messages of the prompt."""
    return tuple(build_prompt(state_of(messages), instruction=instruction).messages)


def system_of(*messages: Message) -> tuple[str, ...]:
    """Return the system texts of the prompt."""
    return build_prompt(state_of(messages)).system


def short(messages: Sequence[PromptMessage]) -> list[str]:
    """Return a prompt in short: ``role: text | call id(name) | result id=text``."""
    return [f"{message.role}: {' | '.join(_short(part) for part in message.parts)}" for message in messages]


def _short(part: PromptPart) -> str:
    match part:
        case PromptText():
            return part.text
        case PromptReasoning():
            return f"({part.text})"
        case PromptCall():
            return f"{part.id}({part.name} {part.arguments})"
        case PromptResult():
            return f"{part.id}={'!' if part.is_error else ''}{part.text}"
        case PromptFile():
            return f"[{part.media_type}]"
