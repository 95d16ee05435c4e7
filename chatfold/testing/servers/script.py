"""What a server answers: one vocabulary for all three protocols.

Owns the parts, answers and failures that a test writes down. How they look on the wire is the business of the protocol
modules, when they are sent that of `playing`, which of them answers which request that of `matching`.

The unit of counting is the *chunk*: one delta of text, reasoning, refusal or tool arguments. The frames that a protocol
puts around the deltas do not count, so the same script stops at the same place whatever the protocol. Position 0 is
before the first chunk; a position beyond the last chunk is right after it, before the frames that close the answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from chatfold.testing.servers.fields import Written, check_fields
from chatfold.testing.servers.signals import Gate

__all__ = [
    "Answer",
    "Cut",
    "Drop",
    "Fail",
    "Found",
    "Part",
    "Reasoning",
    "Refusal",
    "Reply",
    "Search",
    "Stop",
    "Text",
    "ToolCall",
    "Usage",
]

_WITHOUT_BODY: Final = frozenset({204, 205, 304})

Cut = Literal["close", "reset", "end"]
"""How a connection breaks off: closed in the middle of the body, reset (RST), or with the body ended as if it were
whole, as a proxy ends it that lost the service behind it."""
Stop = Literal["end", "tool_calls", "max_tokens", "refusal", "content_filter", "pause"]
"""Why the model stopped; `pause`: Anthropic's service stops in the middle of searches, and is to be asked to go on."""


@dataclass(frozen=True, slots=True)
class Found(Written):
    """A page that a search of the service's found."""

    url: str
    title: str = "A page"
    text: str = "What the page says."
    """What of it is cited."""


@dataclass(frozen=True, slots=True)
class Text(Written):
    """Text that the model says."""

    text: str
    """The whole text; `Answer.chunk_size` cuts it into deltas."""
    cites: Sequence[Found] = ()
    """The pages that it cites; Chat Completions has no citations."""


@dataclass(frozen=True, slots=True)
class Reasoning(Written):
    """What the model thinks before it answers."""

    text: str = ""
    """The thinking or its summary. With an empty text only the signature is sent."""
    signature: str | None = None
    """Anthropic's signature, Responses' encrypted content; None lets the server make one. Chat Completions has none."""
    redacted: bool = False
    """Anthropic: a redacted_thinking block, whose data is the signature. Elsewhere: no readable text."""


@dataclass(frozen=True, slots=True)
class ToolCall(Written):
    """A call of one of the client's tools."""

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict)
    """The arguments; a string is sent as it is, so that broken JSON can be scripted."""
    id: str | None = None
    """The provider's id of the call; None lets the server make one."""

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(dict(self.arguments))


@dataclass(frozen=True, slots=True)
class Refusal(Written):
    """The model refuses: Anthropic's stop_details, OpenAI's refusal text. An answer that has one stops as `refusal`."""

    text: str


@dataclass(frozen=True, slots=True)
class Search(Written):
    """A web search that the service runs; the request must have the service's own tool. Chat Completions has none."""

    query: str | None = None
    """What is searched for; None (Anthropic): the search with which the paused answer before ended goes on."""
    results: Sequence[Found] | None = ()
    """What was found; None (Anthropic): nothing yet, the answer pauses here."""
    error: str | None = None
    """In place of results, Anthropic: the code of an error, such as `max_uses_exceeded`. Elsewhere: it failed."""
    id: str | None = None
    """The provider's id of the search; None lets the server make one."""

    @property
    def unfinished(self) -> bool:
        """Whether it began in the answer before, or goes on in the next."""
        return self.query is None or (self.results is None and self.error is None)


Part = Text | Reasoning | ToolCall | Refusal | Search


@dataclass(frozen=True, slots=True)
class Usage(Written):
    """Token counts in four categories that do not overlap; OpenAI's totals are summed up from them."""

    input: int = 10
    """Input tokens that neither came from a cache nor went into one."""
    output: int = 5
    """Output tokens, reasoning included."""
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    """How many of the output tokens were reasoning."""

    @property
    def input_total(self) -> int:
        """All input tokens, as OpenAI counts them."""
        return self.input + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class Fail:
    """An error in place of an answer, or (as `Answer.fail`) in the middle of one."""

    status: int
    """The HTTP status; within a stream only the type shows."""
    message: str = "A scripted failure."
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further response headers, such as retry-after."""
    type: str | None = None
    """The error's type; None takes the one that the service uses with this status."""
    code: str | None = None
    """OpenAI's error code; None takes the usual one."""
    param: str | None = None
    """OpenAI's parameter name."""
    body: str | None = None
    """Sent in place of the service's error JSON, such as a gateway's HTML page."""
    form: Literal["failed", "error"] = "failed"
    """Within a stream of Responses: a `response.failed` or an `error` event."""
    delay: float = 0.0
    """Seconds before the answer."""
    gate: Gate | None = None
    """The server waits here before it answers."""

    def __post_init__(self) -> None:
        """Refuse a status whose response has no body to say the error in.

        Raises:
            TypeError: A field has what it cannot have.
            ValueError: A number is negative, or the status none of HTTP, of a provisional response, or 204, 205 or 304.
        """
        if type(self.status) is not int or not 200 <= self.status <= 599 or self.status in _WITHOUT_BODY:
            message = f"a failure has an HTTP status from 200 to 599 whose response has a body, not {self.status!r}"
            raise ValueError(message)
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Drop(Written):
    """The connection is closed without any answer."""

    delay: float = 0.0
    """Seconds before the connection is closed."""
    gate: Gate | None = None
    """The server waits here before it closes the connection."""
    cut: Literal["close", "reset"] = "close"
    """How the connection ends."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answers, and how it arrives."""

    parts: Sequence[Part] | str = ()
    """In the order in which they are sent; a string stands for one Text."""
    usage: Usage | None = field(default_factory=Usage)
    """None: no usage is sent (Anthropic, where it is required: zeros)."""
    stop: Stop | None = None
    """Why the model stopped; None: `tool_calls` if there is a call, `refusal` if there is a refusal, else `end`."""
    wire_stop: str | None = None
    """The protocol's own stop or finish reason, sent as it is (Responses: the reason why it is incomplete)."""
    id: str | None = None
    """The response's id; None lets the server make one."""
    model: str | None = None
    """The model that answered; None repeats the one asked for."""
    chunk_size: int = 8
    """Characters in a delta."""
    split_surrogates: bool = False
    """Cut each character outside of the basic plane into two deltas, one half each, as some services do."""
    ping_every: int = 0
    """Send a keep-alive (Anthropic: a ping, else an SSE comment) after each so many chunks; 0 sends none."""
    delay: float = 0.0
    """Seconds before the response headers."""
    gate: Gate | None = None
    """The server waits here: before the headers, or at `gate_after`."""
    gate_after: int | None = None
    """The chunk after which the server waits at the gate."""
    stall_after: int | None = None
    """The chunk after which the server falls silent with the connection open, until `stall.release()`."""
    stall: Gate = field(default_factory=lambda: Gate("stall"))
    fail: Fail | None = None
    """An error in the middle of the stream, after `fail_after` chunks; the stream then ends as the service ends it."""
    fail_after: int = 0
    cut_after: int | None = None
    """The chunk after which the connection breaks off in the middle of the stream."""
    cut_after_frames: int | None = None
    """In place of `cut_after`, where the frames around the chunks matter: the frame after which it breaks off."""
    cut: Cut = "close"
    """How it breaks off; an answer in one piece, whose length was told, is closed where this says `end`."""

    def __post_init__(self) -> None:
        """Check the parts and the numbers.

        Raises:
            TypeError: The parts are no text and no list, something in them is no part, or another field has what it
                cannot have.
            ValueError: A number is negative, a size is not positive, or `gate_after` has no gate.
        """
        if isinstance(self.parts, str):
            object.__setattr__(self, "parts", (Text(self.parts),))
        _check_parts(self.parts)
        check_fields(self)
        if self.chunk_size < 1:
            message = f"Answer.chunk_size must be positive: {self.chunk_size}"
            raise ValueError(message)
        if self.gate_after is not None and self.gate is None:
            message = "Answer.gate_after needs a gate"
            raise ValueError(message)

    @property
    def part_list(self) -> list[Part]:
        """The parts as a list."""
        return [Text(self.parts)] if isinstance(self.parts, str) else list(self.parts)

    @property
    def effective_stop(self) -> Stop:
        """The given stop, or the one that follows from the parts."""
        if self.stop is not None:
            return self.stop
        if any(isinstance(part, Refusal) for part in self.part_list):
            return "refusal"
        return "tool_calls" if any(isinstance(part, ToolCall) for part in self.part_list) else "end"


def _check_parts(parts: object) -> None:
    if not isinstance(parts, list | tuple):
        message = f"Answer.parts must be a text or a list of parts, not {parts!r}"
        raise TypeError(message)
    for place, part in enumerate(parts):
        if not isinstance(part, Part):
            kinds = ", ".join(kind.__name__ for kind in get_args(Part))
            message = f"Answer.parts[{place}] must be one of {kinds}, not {part!r}"
            raise TypeError(message)


Reply = Answer | Fail | Drop
