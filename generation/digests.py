"""Digests of a model request by section, so that a later reader sees which part of a prompt changed. Pure.

The digest of the messages is that of their sequence: a SHA-256 over each message as JSON (all fields, keys sorted),
preceded by its length in 8 bytes. So it goes on from the digest of a prefix, and costs what came since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, final

import msgspec

from events.records import RequestDigests
from generation.digest import as_text, digest_of
from generation.prompt_types import ModelRequest, PromptMessage, ToolSpec
from generation.providers.native import ProviderTool

MOST_OPTIONS: Final = 256
"""Options of requests whose digests are kept."""

_SORTED: Final = msgspec.json.Encoder(order="sorted")


@final
class MessagesDigest:
    """The digest of a sequence of messages, as far as it was taken."""

    __slots__ = ("_sha",)

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, message: PromptMessage) -> None:
        """Take the next message."""
        data = _SORTED.encode(message)
        self._sha.update(len(data).to_bytes(8, "big") + data)

    def with_more(self, messages: Iterable[PromptMessage]) -> str:
        """Return the digest of the messages so far and these; what was taken stays as it is."""
        more = MessagesDigest()
        more._sha = self._sha.copy()
        for message in messages:
            more.add(message)
        return as_text(more._sha.digest())


@final
class OptionsDigests:
    """The digests of the options that requests have: few, and the same for all chats of an agent."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: Final[dict[tuple[object, ...], str]] = {}

    def of(self, request: ModelRequest) -> str:
        """Return the digest of what a request says beside its texts and tools."""
        # As bytes: to Python 1 equals 1.0 and true, and in a request they are not the same.
        given = msgspec.json.encode((request.options, request.extra))
        key = request.model, request.max_output, request.effort, request.tool_choice_none, given
        digest = self._known.get(key)
        if digest is None:
            if len(self._known) >= MOST_OPTIONS:
                self._known.clear()
            digest = self._known[key] = options_digest(request)
        return digest


def options_digest(request: ModelRequest) -> str:
    """Return the digest of what a request says beside its texts and tools."""
    return digest_of(options_of(request))


def options_of(request: ModelRequest) -> dict[str, Any]:
    """Return what a request says beside its texts and tools, as it is digested."""
    return {
        "model": request.model,
        "max_output": request.max_output,
        "effort": request.effort,
        "tool_choice_none": request.tool_choice_none,
        "options": request.options,
        "extra": request.extra,
    }


def tools_digest(tools: Sequence[ToolSpec], native: Sequence[ProviderTool]) -> str:
    """Return the digest of the tools of a request: its own, and those that the service runs."""
    # Named only where there are any: most requests have none, and their digest is that of their own tools.
    return digest_of([*tools, {"native": native}] if native else tools)


def digest_request(
    request: ModelRequest,
    *,
    system: str | None = None,
    tools: str | None = None,
    messages: str | None = None,
    options: str | None = None,
) -> RequestDigests:
    """Return the digest of each section of ``request``; options cover the model, effort and limits too.

    Args:
        request: The request.
        system: The digest of its system texts, where it is known.
        tools: The same of its tools,
        messages: and of its messages,
        options: and of its options.
    """
    return RequestDigests(
        system=system or digest_of(request.system),
        tools=tools or tools_digest(request.tools, request.native),
        messages=messages or MessagesDigest().with_more(request.messages),
        options=options or options_digest(request),
    )
