"""The shape of a Chat Completions request, as pydantic models.

Owns what can be said of one field at a time; rules across messages are `chat_history`'s. Text must not be empty, which
is stricter than OpenAI itself and as strict as several compatible servers; results of tools may be.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from chatfold.testing.servers.checks import Shape
from chatfold.testing.servers.openai_common import parts_tag

__all__ = ["AssistantMessage", "ChatRequest", "Message", "SystemMessage", "TextPart", "ToolMessage", "UserMessage"]

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=64)]
CallId = Annotated[str, Field(min_length=1, max_length=40)]
NonEmpty = Annotated[str, Field(min_length=1)]


class TextPart(Shape):
    """Text."""

    type: Literal["text"]
    text: NonEmpty


class MediaPart(Shape):
    """An image, a sound or a file."""

    type: Literal["image_url", "input_audio", "file"]
    image_url: dict[str, Any] | None = None
    input_audio: dict[str, Any] | None = None
    file: dict[str, Any] | None = None


class RefusalPart(Shape):
    """A refusal of an earlier answer."""

    type: Literal["refusal"]
    refusal: str


UserPart = Annotated[
    Annotated[TextPart, Tag("<text>")]
    | Annotated[MediaPart, Tag("<image_url>")]
    | Annotated[MediaPart, Tag("<input_audio>")]
    | Annotated[MediaPart, Tag("<file>")],
    Discriminator(parts_tag),
]
AssistantPart = Annotated[
    Annotated[TextPart, Tag("<text>")] | Annotated[RefusalPart, Tag("<refusal>")], Discriminator(parts_tag)
]
Parts = Annotated[list[UserPart], Field(min_length=1)]
Texts = Annotated[list[TextPart], Field(min_length=1)]


class SystemMessage(Shape):
    """Instructions."""

    role: Literal["system", "developer"]
    content: NonEmpty | Texts
    name: str | None = None


class UserMessage(Shape):
    """What the user says."""

    role: Literal["user"]
    content: NonEmpty | Parts
    name: str | None = None


class FunctionCall(Shape):
    """Name and arguments of a call."""

    name: Name
    arguments: str


class CallParam(Shape):
    """A call that the model made."""

    id: CallId
    type: Literal["function"]
    function: FunctionCall


class AssistantMessage(Shape):
    """What the model said; `reasoning_content` is what compatible servers send and take back."""

    role: Literal["assistant"]
    content: str | Annotated[list[AssistantPart], Field(min_length=1)] | None = None
    refusal: str | None = None
    name: str | None = None
    audio: dict[str, Any] | None = None
    reasoning_content: str | None = None
    tool_calls: Annotated[list[CallParam], Field(min_length=1)] | None = None


class ToolMessage(Shape):
    """The result of a call."""

    role: Literal["tool"]
    content: str | Annotated[list[TextPart], Field(min_length=1)]
    tool_call_id: CallId


def _role(value: Any) -> str:
    role = value.get("role") if isinstance(value, dict) else getattr(value, "role", None)
    return "<system>" if role == "developer" else f"<{role}>"


Message = Annotated[
    Annotated[SystemMessage, Tag("<system>")]
    | Annotated[UserMessage, Tag("<user>")]
    | Annotated[AssistantMessage, Tag("<assistant>")]
    | Annotated[ToolMessage, Tag("<tool>")],
    Discriminator(_role),
]


class FunctionDefinition(Shape):
    """A function that the model may call."""

    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Shape):
    """A tool; only functions are known here."""

    type: Literal["function"]
    function: FunctionDefinition


class StreamOptions(Shape):
    """Options of the stream."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatRequest(Shape):
    """The body of POST /v1/chat/completions."""

    model: NonEmpty
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: Annotated[list[FunctionTool], Field(min_length=1)] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    n: Literal[1] | None = None
    temperature: float | None = None
    top_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, int] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    user: str | None = None
    store: bool | None = None
    metadata: dict[str, str] | None = None
    modalities: list[str] | None = None
    prediction: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    reasoning_effort: str | None = None
    response_format: dict[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    verbosity: str | None = None
    web_search_options: dict[str, Any] | None = None
