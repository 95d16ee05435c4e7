"""The pieces that the three protocols share on the wire: frames, ids, cutting text into deltas.

Owns no protocol's field names; those are in the emitting modules.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from chatfold.testing.servers.recording import Json
from chatfold.testing.servers.script import Answer, Part, Reasoning, ToolCall

__all__ = ["Frame", "Ids", "Plan", "cut", "dump", "resolve", "seal", "sse"]

_HIGH = range(0xD800, 0xDC00)


@dataclass(frozen=True, slots=True)
class Frame:
    """What is written to the socket in one piece."""

    data: bytes
    delta: bool = False
    """Whether it counts as a chunk."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An answer in its protocol's form, both ways."""

    frames: list[Frame]
    """The stream; empty if the client did not ask for one."""
    body: Json
    """The answer in one piece."""


@dataclass(slots=True)
class Ids:
    """Ids that a server gives out: counted, so that two runs of a test see the same ones."""

    repeat_calls: bool = False
    """Whether the calls of each answer are call_1, call_2, ... again."""
    _counts: dict[str, int] = field(default_factory=dict)

    def new(self, prefix: str) -> str:
        """The next id with this prefix."""
        self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return f"{prefix}{self._counts[prefix]:024d}"


def resolve(answer: Answer, ids: Ids, call_prefix: str, signature_prefix: str) -> list[Part]:
    """The answer's parts with the ids and signatures that the script left to the server."""
    parts: list[Part] = []
    for part in answer.part_list:
        if isinstance(part, ToolCall) and part.id is None:
            nth = sum(isinstance(earlier, ToolCall) for earlier in parts) + 1
            call_id = f"call_{nth}" if ids.repeat_calls else ids.new(call_prefix)
            parts.append(replace(part, id=call_id))
        elif isinstance(part, Reasoning) and part.signature is None:
            parts.append(replace(part, signature=seal(ids.new(signature_prefix) + part.text)))
        else:
            parts.append(part)
    return parts


def seal(text: str) -> str:
    """What only the service can read of a text; the same for the same text, so that two runs of a test see the same.

    It is as opaque as the services' own, with all characters of base64: who cleans it up breaks it.
    """
    return base64.b64encode(hashlib.sha384(text.encode("utf-8")).digest() + b"+").decode("ascii")


def cut(text: str, answer: Answer) -> Iterator[str]:
    """Cut a text into deltas as the answer asks; halves of a surrogate pair may come out as single code units."""
    if answer.split_surrogates:
        units = text.encode("utf-16-le", "surrogatepass")
        text = "".join(chr(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2))
    delta = ""
    for char in text:
        delta += char
        if len(delta) >= answer.chunk_size or (answer.split_surrogates and ord(char) in _HIGH):
            yield delta
            delta = ""
    if delta:
        yield delta


def dump(value: object) -> bytes:
    """JSON in ASCII, as the services send it: half a surrogate pair survives only as an escape."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def sse(data: object, event: str | None = None, *, delta: bool = False) -> Frame:
    """One server-sent event."""
    head = b"" if event is None else b"event: " + event.encode("ascii") + b"\n"
    return Frame(head + b"data: " + dump(data) + b"\n\n", delta)
