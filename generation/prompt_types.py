"""The neutral form of a model request: what prompt assembly makes and what providers turn into their wire format.

Values are plain (content already read): a prompt is built from a loaded transcript just before it is sent, and never
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from events.content import Json
from generation.providers.native import ProviderTool


class PromptText(Struct, frozen=True, kw_only=True, gc=False, tag="text"):
    """Text, never blank. ``metadata`` is what its provider wants back with it, tagged by who made it."""

    text: str
    metadata: Json = None


class PromptReasoning(Struct, frozen=True, kw_only=True, gc=False, tag="reasoning"):
    """Reasoning to hand back.

    ``metadata`` is what its provider attached; ``provider`` and ``model`` say who made it.
    """

    text: str
    metadata: Json = None
    redacted: bool = False
    provider: str | None = None
    model: str | None = None


class PromptCall(Struct, frozen=True, kw_only=True, gc=False, tag="call"):
    """A tool call. ``id`` is unique within the prompt; ``arguments`` is valid JSON text of an object."""

    id: str
    name: str
    arguments: str
    metadata: Json = None
    provider_executed: bool = False


class PromptFile(Struct, frozen=True, kw_only=True, gc=False, tag="file"):
    """A file: ``data`` is base64 text."""

    media_type: str
    data: str
    name: str | None = None


class PromptResult(Struct, frozen=True, kw_only=True, gc=False, tag="result"):
    """The result of the call ``id``, as text, and the files that go with it."""

    id: str
    name: str
    text: str
    is_error: bool = False
    metadata: Json = None
    provider_executed: bool = False
    media: tuple[PromptFile, ...] = ()


PromptPart: TypeAlias = PromptText | PromptReasoning | PromptCall | PromptResult | PromptFile


class PromptMessage(Struct, frozen=True, kw_only=True, gc=False):
    """One message. Results stand in ``tool`` messages, one or more after the assistant message with their calls."""

    role: Literal["user", "assistant", "tool"]
    parts: tuple[PromptPart, ...]

    @property
    def text(self) -> str:
        """What its texts and results say, one after the other."""
        return "".join(part.text for part in self.parts if isinstance(part, PromptText | PromptResult))


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as the model sees it. ``schema`` is a JSON schema of an object."""

    name: str
    description: str
    schema: dict[str, Json]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request to a model.

    ``system`` are the system texts in order. ``messages`` share their beginning with those of the chat's earlier
    requests. ``effort`` is the reasoning effort (none < minimal < low < medium < high < xhigh < max) or None.
    ``native`` are tools that the service runs, declared behind the others.
    ``options`` are options by name (``generation.providers.options``), ``extra`` is put into the request as it is.
    ``tool_choice_none`` keeps the tools declared but unused. ``continues`` is a response that the service keeps, with
    all that stands before ``messages``; only a provider that says so (``goes_on``) is asked so.
    ``context_limit`` is what is known of the model's context, in tokens.
    """

    model: str
    system: tuple[str, ...]
    messages: Sequence[PromptMessage]
    tools: tuple[ToolSpec, ...] = ()
    max_output: int | None = None
    effort: str | None = None
    tool_choice_none: bool = False
    options: dict[str, Json] = {}
    extra: dict[str, Json] = {}
    native: tuple[ProviderTool, ...] = ()
    continues: str | None = None
    context_limit: int | None = None
