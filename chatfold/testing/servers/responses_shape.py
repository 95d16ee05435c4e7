"""The shape of a Responses request, as pydantic models.

Owns what can be said of one field at a time; rules across items are `responses_history`'s. Text must not be empty,
which is stricter than the service itself; tool results may be.
"""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from chatfold.testing.servers.checks import Shape
from chatfold.testing.servers.openai_common import parts_tag

__all__ = [
    "FunctionCallItem",
    "FunctionOutputItem",
    "FunctionTool",
    "InputText",
    "Item",
    "MessageItem",
    "OutputText",
    "ReasoningItem",
    "ReferenceItem",
    "RefusalPart",
    "ResponsesRequest",
    "WebSearchItem",
    "WebSearchTool",
]

Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=64)]
CallId = Annotated[str, Field(min_length=1, max_length=64)]
ItemId = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$", max_length=64)]
NonEmpty = Annotated[str, Field(min_length=1)]
Status = Literal["in_progress", "completed", "incomplete"]


class InputText(Shape):
    """Text for the model."""

    type: Literal["input_text"]
    text: NonEmpty


class InputImage(Shape):
    """An image."""

    type: Literal["input_image"]
    detail: Literal["low", "high", "auto", "original"] | None = None
    image_url: str | None = None
    file_id: str | None = None


class InputFile(Shape):
    """A file."""

    type: Literal["input_file"]
    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None


class OutputText(Shape):
    """Text of the model."""

    type: Literal["output_text"]
    text: NonEmpty
    annotations: list[Any] = Field(default_factory=list)
    logprobs: list[Any] | None = None


class RefusalPart(Shape):
    """A refusal of the model."""

    type: Literal["refusal"]
    refusal: str


InputPart = Annotated[
    Annotated[InputText, Tag("<input_text>")]
    | Annotated[InputImage, Tag("<input_image>")]
    | Annotated[InputFile, Tag("<input_file>")],
    Discriminator(parts_tag),
]
AnyPart = Annotated[
    Annotated[InputText, Tag("<input_text>")]
    | Annotated[InputImage, Tag("<input_image>")]
    | Annotated[InputFile, Tag("<input_file>")]
    | Annotated[OutputText, Tag("<output_text>")]
    | Annotated[RefusalPart, Tag("<refusal>")],
    Discriminator(parts_tag),
]


class MessageItem(Shape):
    """A message of any role."""

    type: Literal["message"] = "message"
    role: Literal["user", "system", "developer", "assistant"]
    content: NonEmpty | Annotated[list[AnyPart], Field(min_length=1)]
    id: ItemId | None = None
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCallItem(Shape):
    """A call that the model made."""

    type: Literal["function_call"]
    call_id: CallId
    name: Name
    arguments: str
    id: ItemId | None = None
    status: Status | None = None
    namespace: str | None = None
    caller: dict[str, Any] | None = None


class FunctionOutputItem(Shape):
    """The result of a call."""

    type: Literal["function_call_output"]
    call_id: CallId
    output: str | list[InputPart]
    id: ItemId | None = None
    status: Status | None = None


class SummaryPart(Shape):
    """A piece of a reasoning summary."""

    type: Literal["summary_text"]
    text: str


class ReasoningPart(Shape):
    """A piece of reasoning text."""

    type: Literal["reasoning_text"]
    text: str


class ReasoningItem(Shape):
    """Reasoning as the service gave it out."""

    type: Literal["reasoning"]
    id: ItemId
    summary: list[SummaryPart]
    content: list[ReasoningPart] | None = None
    encrypted_content: str | None = None
    status: Status | None = None


class WebSearchItem(Shape):
    """A search that the service ran."""

    type: Literal["web_search_call"]
    id: ItemId
    status: Literal["in_progress", "searching", "completed", "failed", "incomplete"]
    action: dict[str, Any] | None = None


class ReferenceItem(Shape):
    """An item that the service keeps, by its id."""

    type: Literal["item_reference"] | None = None
    id: ItemId


def _item_tag(value: Any) -> str:
    if not isinstance(value, dict):
        return parts_tag(value)
    if value.get("type") is not None:
        return parts_tag(value)
    return "<item_reference>" if set(value) == {"id"} else "<message>"


Item = Annotated[
    Annotated[MessageItem, Tag("<message>")]
    | Annotated[FunctionCallItem, Tag("<function_call>")]
    | Annotated[FunctionOutputItem, Tag("<function_call_output>")]
    | Annotated[ReasoningItem, Tag("<reasoning>")]
    | Annotated[WebSearchItem, Tag("<web_search_call>")]
    | Annotated[ReferenceItem, Tag("<item_reference>")],
    Discriminator(_item_tag),
]


class FunctionTool(Shape):
    """A function that the model may call."""

    type: Literal["function"]
    name: Name
    parameters: dict[str, Any] | None
    strict: bool | None = None
    description: str | None = None


class SearchFilters(Shape):
    """Where a search looks."""

    allowed_domains: list[str] | None = None
    blocked_domains: list[str] | None = None


class WebSearchTool(Shape):
    """The search that the service runs; its other tools are not known here."""

    type: Literal["web_search", "web_search_2025_08_26"]
    filters: SearchFilters | None = None
    search_context_size: Literal["low", "medium", "high"] | None = None
    user_location: dict[str, Any] | None = None
    external_web_access: bool | None = None


AnyTool = Annotated[
    Annotated[FunctionTool, Tag("<function>")]
    | Annotated[WebSearchTool, Tag("<web_search>")]
    | Annotated[WebSearchTool, Tag("<web_search_2025_08_26>")],
    Discriminator(parts_tag),
]


class ReasoningOptions(Shape):
    """How much the model thinks, and what it tells of it."""

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None
    generate_summary: Literal["auto", "concise", "detailed"] | None = None
    context: str | None = None


class ResponsesRequest(Shape):
    """The body of POST /v1/responses."""

    model: NonEmpty
    input: NonEmpty | Annotated[list[Item], Field(min_length=1)] | None = None
    instructions: str | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    include: list[str] | None = None
    tools: list[AnyTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: Annotated[int, Field(ge=16)] | None = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    reasoning: ReasoningOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    text: dict[str, Any] | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    truncation: Literal["auto", "disabled"] | None = None
    background: Literal[False] | None = None
    user: str | None = None
