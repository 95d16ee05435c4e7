"""What stands before signed thinking, as a digest that stays with its signature. Pure.

A signature holds of a block behind the conversation that it was made for. Behind another one (a message was erased, a
compaction undone, the context collected anew, a call has another id in a fork) the block must not come back: it is left
out whole, as the service allows, and so is all thinking of that answer.

Thinking itself is not part of a prefix, so an answer whose thinking was left out does not cost the next one its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, final

import msgspec
from msgspec.structs import replace

from events.content import Json
from generation.digest import as_text
from generation.prompt_types import ModelRequest, PromptMessage, PromptReasoning

_ENCODE: Final = msgspec.json.Encoder(order="sorted").encode
_KEY: Final = "prefix"


def signed_behind(metadata: Json, prefix: str) -> Json:
    """Return metadata of thinking with the digest of what it was made behind."""
    return {**metadata, _KEY: prefix} if isinstance(metadata, dict) and prefix else metadata


def before_messages(request: ModelRequest) -> bytes:
    """Return what stands before the messages of a request: its tools and system texts."""
    return _ENCODE((request.tools, request.native, request.system))


@final
class Prefix:
    """The digest of what stands before the messages, and of the messages so far without their thinking."""

    __slots__ = ("_sha",)

    def __init__(self, before: bytes) -> None:
        self._sha = hashlib.sha256(before)

    def copy(self) -> Prefix:
        """Return another one that goes on from here by itself."""
        other = Prefix(b"")
        other._sha = self._sha.copy()
        return other

    @property
    def digest(self) -> str:
        """The digest."""
        return as_text(self._sha.copy().digest())

    def take(self, message: PromptMessage) -> PromptMessage:
        """Go on with the next message, and return it without thinking that was signed behind something else."""
        thoughts = [part for part in message.parts if isinstance(part, PromptReasoning)]
        if not thoughts:
            self._add(message)
            return message
        spoken = replace(message, parts=tuple(part for part in message.parts if not isinstance(part, PromptReasoning)))
        signed = {found for part in thoughts if (found := _signed_behind(part)) is not None}
        kept = message if not signed or signed == {self.digest} else spoken
        if spoken.parts:
            self._add(spoken)
        return kept

    def _add(self, message: PromptMessage) -> None:
        data = _ENCODE(message)
        self._sha.update(len(data).to_bytes(8, "big") + data)


def _signed_behind(part: PromptReasoning) -> Any:
    """Return the digest that goes with a part; None where an older release kept none."""
    return part.metadata.get(_KEY) if isinstance(part.metadata, Mapping) else None
