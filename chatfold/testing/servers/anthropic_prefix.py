"""What stands before a thinking block, as one digest: a server that signs it takes a block back only behind the same.

Owns which of a request counts. Thinking itself does not: the service drops that of earlier turns, and so may clients.
Nor do cache breakpoints, citations and blank texts, nor how a conversation is cut into messages of one role.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from chatfold.testing.servers.recording import Json

__all__ = ["Coverage", "Prefix"]

Coverage = Literal["text", "messages", "request"]
"""What a signature covers: the block's text alone, the messages before it too, or system and tools as well."""

_PARTS = {"text": ("text",), "tool_use": ("id", "name", "input"), "tool_result": ("tool_use_id", "content", "is_error")}
_THINKING = frozenset({"thinking", "redacted_thinking"})
_LEFT_OUT = frozenset({"cache_control", "citations", "caller"})


@dataclass(slots=True)
class Prefix:
    """The digest of a conversation so far."""

    digest: str = ""
    before: list[tuple[str, str, str]] = field(default_factory=list)
    """Of each thinking block its place, its signature or data, and the digest of what stands before it."""
    last: str = ""
    """What counts of the last block, as text."""

    @classmethod
    def of(cls, body: Json, covers: Coverage, broken: set[str]) -> "Prefix":
        """Read a request.

        Args:
            body: The request, whose shape is right.
            covers: What counts.
            broken: Ids of calls whose arguments were no JSON object, so that they cannot come back as they were.
        """
        prefix = cls()
        if covers == "request":
            prefix._take("system", _plain(body.get("system")))
            prefix._take("tools", _plain(body.get("tools")))
        for place, role, block in _blocks(body):
            prefix.add(role, block, broken, place)
        return prefix

    def add(self, role: str, block: Json, broken: set[str], place: str = "") -> None:
        """Add a block."""
        if block["type"] in _THINKING:
            self.before.append((place, block.get("signature") or block.get("data") or "", self.digest))
            return
        if block["type"] == "text" and not block["text"].strip():
            return
        kept = {name: block.get(name) for name in _PARTS[block["type"]]} if block["type"] in _PARTS else block
        if kept.get("id") in broken:
            kept = {**kept, "input": None}
        plain = _plain({"type": block["type"], **kept})
        self.last = json.dumps(plain, sort_keys=True)
        self._take(role, plain)

    def _take(self, role: str, value: object) -> None:
        text = json.dumps([self.digest, role, value], sort_keys=True)
        self.digest = hashlib.sha256(text.encode("utf-8")).hexdigest()


def _blocks(body: Json) -> Iterator[tuple[str, str, Json]]:
    for index, message in enumerate(body["messages"]):
        content = message["content"]
        for at, block in enumerate([{"type": "text", "text": content}] if isinstance(content, str) else content):
            yield f"messages.{index}.content.{at}", message["role"], block


def _plain(value: object) -> object:
    """Leave out what does not count."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name not in _LEFT_OUT and each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value
