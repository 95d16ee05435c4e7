"""The shape of an Anthropic Messages request: fields, types and patterns, as pydantic models.

Owns what can be said of one field at a time; rules across messages are `anthropic_history`'s. The service words such
refusals as pydantic does, so the first of pydantic's errors is the answer.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, ValidationError

from chatfold.testing.servers.checks import RequestRefused, Shape, first_error
from chatfold.testing.servers.recording import Json

__all__ = [
    "VERSIONS",
    "CacheControl",
    "Custom",
    "MessagesRequest",
    "MessagesRequest2023",
    "RedactedThinking",
    "ServerToolUse",
    "TextBlock",
    "Thinking",
    "ToolResult",
    "ToolUse",
    "WebSearch",
    "WebSearchToolResult",
    "parse",
]

Id = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
SearchId = Annotated[str, Field(pattern=r"^srvtoolu_[a-zA-Z0-9_]+$")]
ToolName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]


class CacheControl(Shape):
    """A cache breakpoint."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class Block(Shape):
    """What blocks that may carry a cache breakpoint share."""

    cache_control: CacheControl | None = None


class TextBlock(Block):
    """Text."""

    type: Literal["text"]
    text: str
    citations: list[Any] | None = None


class SourceBlock(Block):
    """An image or a document."""

    type: Literal["image", "document"]
    source: dict[str, Any]
    title: str | None = None
    context: str | None = None
    citations: dict[str, Any] | None = None


class ToolUse(Block):
    """A call that the model made."""

    type: Literal["tool_use"]
    id: Id
    name: Annotated[str, Field(min_length=1, max_length=200)]
    input: dict[str, Any]
    caller: dict[str, Any] | None = None
    toolset_name: str | None = None


class ToolResult(Block):
    """The result of a call."""

    type: Literal["tool_result"]
    tool_use_id: Id
    content: str | list[Annotated[TextBlock | SourceBlock, Field(discriminator="type")]] | None = None
    is_error: bool | None = None
    toolset_name: str | None = None


class Thinking(Shape):
    """Thinking as the service issued it."""

    type: Literal["thinking"]
    thinking: str
    signature: str


class RedactedThinking(Shape):
    """Thinking that only the service can read."""

    type: Literal["redacted_thinking"]
    data: str


class ServerToolUse(Block):
    """A search that the service ran; its other tools are not known here."""

    type: Literal["server_tool_use"]
    id: SearchId
    name: Literal["web_search"]
    input: dict[str, Any]
    caller: dict[str, Any] | None = None


class WebSearchResult(Shape):
    """A page that a search found; only the service can read its content."""

    type: Literal["web_search_result"]
    url: str
    title: str
    encrypted_content: str
    page_age: str | None = None


class WebSearchError(Shape):
    """Why a search found nothing."""

    type: Literal["web_search_tool_result_error"]
    error_code: str


class WebSearchToolResult(Block):
    """What a search found."""

    type: Literal["web_search_tool_result"]
    tool_use_id: SearchId
    content: list[WebSearchResult] | WebSearchError
    caller: dict[str, Any] | None = None


ContentBlock = Annotated[
    TextBlock | SourceBlock | ToolUse | ToolResult | Thinking | RedactedThinking | ServerToolUse | WebSearchToolResult,
    Field(discriminator="type"),
]


class TurnMessage(Shape):
    """One message of the conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | list[ContentBlock]

    @property
    def blocks(self) -> list[Any]:
        """The content as blocks."""
        return [TextBlock(type="text", text=self.content)] if isinstance(self.content, str) else self.content


class InputSchema(Shape):
    """A tool's schema: an object whose `required`, if there, is a list."""

    model_config = ConfigDict(extra="allow", strict=True)

    type: Literal["object"]
    properties: dict[str, Any] | None = None
    required: list[str] = Field(default_factory=list)


class Custom(Block):
    """A tool that the client runs."""

    name: ToolName
    input_schema: InputSchema
    type: Literal["custom"] | None = None
    description: str | None = None
    strict: bool | None = None
    eager_input_streaming: bool | None = None
    defer_loading: bool | None = None
    allowed_callers: list[str] | None = None
    input_examples: list[dict[str, Any]] | None = None


class WebSearch(Block):
    """The search that the service runs."""

    type: Literal["web_search_20250305", "web_search_20260209", "web_search_20260318"]
    name: Literal["web_search"]
    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None
    max_uses: Annotated[int, Field(gt=0)] | None = None
    user_location: dict[str, Any] | None = None
    allowed_callers: list[str] | None = None
    defer_loading: bool | None = None
    strict: bool | None = None


def _tool_tag(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "custom" if kind is None else str(kind)


AnyTool = Annotated[
    Annotated[Custom, Tag("custom")]
    | Annotated[WebSearch, Tag("web_search_20250305")]
    | Annotated[WebSearch, Tag("web_search_20260209")]
    | Annotated[WebSearch, Tag("web_search_20260318")],
    Discriminator(_tool_tag),
]


class ToolChoice(Shape):
    """Whether and which tool the model must call."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class ThinkingConfig(Shape):
    """How much the model thinks."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: Annotated[int, Field(ge=1024)] | None = None
    display: Literal["summarized", "omitted"] | None = None


class MessagesRequest(Shape):
    """The body of POST /v1/messages."""

    model: Annotated[str, Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=0)]
    messages: list[TurnMessage]
    system: str | list[TextBlock] | None = None
    tools: list[AnyTool] | None = None
    tool_choice: ToolChoice | None = None
    thinking: ThinkingConfig | None = None
    stream: bool | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    cache_control: CacheControl | None = None
    container: Any = None
    diagnostics: dict[str, Any] | None = None
    inference_geo: str | None = None
    output_config: dict[str, Any] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    speed: Literal["standard", "fast"] | None = None
    user_profile_id: str | None = None


class MessagesRequest2023(MessagesRequest):
    """The body as API version 2023-06-01 has it: with parameters of sampling, which 2026-10-21 took away."""

    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None


VERSIONS: dict[str, type[MessagesRequest]] = {"2023-06-01": MessagesRequest2023, "2026-10-21": MessagesRequest}
"""The shape of the body by the value of the anthropic-version header."""


def parse(body: Json, version: str) -> MessagesRequest:
    """Check a body's shape.

    Args:
        body: The request's body.
        version: The API version, one of `VERSIONS`.

    Raises:
        RequestRefused: With the place and the words of the first error.
    """
    try:
        return VERSIONS[version].model_validate(body)
    except ValidationError as error:
        first = first_error(error)
        place = ".".join(str(step) for step in first["loc"] if not str(step).startswith("list["))
        message = f"{place}: {first['msg']}"
        raise RequestRefused(message) from error
