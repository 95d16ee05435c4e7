"""What a provider does: stream one model call as neutral parts, and classify what went wrong.

A provider wraps an official SDK, whose own retries are off: there is one retry layer, and it is ours and durable.
Cancelling the task that iterates a stream closes the connection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol, TypeAlias

from msgspec import Struct

from events.content import Json
from events.messages import FinishReason, Usage
from generation.prompt_types import ModelRequest


class TextDelta(Struct, frozen=True, kw_only=True, gc=False):
    """More text of the text block ``block``. Deltas may split a surrogate pair."""

    block: int
    text: str


class TextEnd(Struct, frozen=True, kw_only=True, gc=False):
    """A text block ended; ``metadata`` is what its provider wants back (citations, item id), if anything."""

    block: int
    metadata: Json = None


class ReasoningDelta(Struct, frozen=True, kw_only=True, gc=False):
    """More reasoning text of block ``block``."""

    block: int
    text: str


class ReasoningEnd(Struct, frozen=True, kw_only=True, gc=False):
    """A reasoning block ended.

    ``metadata`` (signature, encrypted content, item id) is handed back unchanged in later prompts.
    """

    block: int
    metadata: Json = None
    redacted: bool = False


class CallDelta(Struct, frozen=True, kw_only=True, gc=False):
    """More argument text of the call in block ``block``; ``name`` and ``id`` come with its first delta."""

    block: int
    text: str
    name: str = ""
    id: str = ""


class CallEnd(Struct, frozen=True, kw_only=True, gc=False):
    """A tool call is whole: ``arguments`` is the JSON text as the model gave it (it may be invalid)."""

    block: int
    id: str
    name: str
    arguments: str
    metadata: Json = None
    provider_executed: bool = False


class ProviderResult(Struct, frozen=True, kw_only=True, gc=False):
    """The result of a call of ``name`` that the provider executed itself, in the assistant message."""

    block: int
    call_id: str
    output: Json
    name: str = ""
    is_error: bool = False
    metadata: Json = None


class SourceFound(Struct, frozen=True, kw_only=True, gc=False):
    """A source that the model or its provider cites."""

    block: int
    source_id: str
    url: str
    title: str | None = None


class Finish(Struct, frozen=True, kw_only=True, gc=False):
    """The last part of a whole stream. A stream that ends without it was cut.

    ``usage`` is None where the service did not say it. ``context_tokens`` is what the newest prompt took, where
    ``usage`` is that of several requests for one answer.
    """

    reason: FinishReason
    usage: Usage | None
    response_id: str | None = None
    model: str | None = None
    metadata: Json = None
    explanation: str | None = None
    context_tokens: int | None = None


StreamPart: TypeAlias = (
    TextDelta | TextEnd | ReasoningDelta | ReasoningEnd | CallDelta | CallEnd | ProviderResult | SourceFound | Finish
)


class UsageSoFar(Struct, frozen=True, kw_only=True, gc=False):
    """Usage known before the end, kept when the stream is cut or interrupted.

    Some providers report their input first. One without counts says that the service accepted the request: from here on
    the call may be billed, and is unmetered if it ends without ``Finish``. ``context_tokens`` as in ``Finish``.
    """

    usage: Usage
    response_id: str | None = None
    context_tokens: int | None = None


class Provider(Protocol):
    """A source of model answers."""

    @property
    def name(self) -> str:
        """The provider's name in model references: ``anthropic``, ``openai``, ``openai-chat``, ``scripted``."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Call the model once and yield its parts as they come; blocks are numbered in the order of the answer's parts.

        Whoever stops before the end closes the generator (``contextlib.aclosing``), and so the connection.

        Raises:
            generation.errors.ProviderError: The call failed; carries the classified error.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
