"""What a server saw: its requests, and those that it refused.

Owns the records and the waiting for them; who fills them in is `server`.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

from chatfold.testing.servers.signals import DEFAULT_WAIT, Signal

__all__ = ["Json", "RecordedRequest", "RefusedRequest", "RequestLog", "Seen"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What of a conversation a server found in a request, for tests to assert on."""

    roles: tuple[str, ...] = ()
    """The role of each message of the whole conversation; Responses: an item's type where it has no role."""
    calls: tuple[str, ...] = ()
    """The provider's ids of the calls."""
    reasoning: tuple[str, ...] = ()
    """Signatures and data of thinking, encrypted contents of reasoning (its id where it has none), Chat: its text."""
    searches: tuple[str, ...] = ()
    """The ids of the searches that the service ran."""
    breakpoints: tuple[str, ...] = ()
    """Anthropic: the places of cache breakpoints."""
    chained: int = 0
    """Responses: how many items came from the previous response and not from the request."""


@dataclass(eq=False, slots=True)
class RecordedRequest:
    """One request as it arrived."""

    index: int
    """Its place in the order of arrival at this server, from 0."""
    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    """The body's bytes."""
    body: Json = field(default_factory=dict)
    """The parsed body; empty if it was no JSON object."""
    user_texts: tuple[str, ...] = ()
    """The texts of the user's messages, in order; filled in once the request has passed the checks."""
    tool_results: tuple[tuple[str, str], ...] = ()
    """Tool results as (provider call id, text), in order; filled in once the request has passed the checks."""
    seen: Seen = field(default_factory=Seen)
    """What it holds of the conversation; filled in once the request has passed the checks."""
    sent: bool = False
    """Whether the whole answer was sent."""
    ended: Signal = field(default_factory=lambda: Signal("the end of the answer"))
    """Set when the server is done with the request, in whatever way."""
    hung_up: Signal = field(default_factory=lambda: Signal("the client's hanging up"))
    """Set when the client closed the connection before the whole answer was sent."""

    @property
    def closed_early(self) -> bool:
        """Whether the client closed the connection before the whole answer was sent."""
        return self.hung_up.is_set

    @property
    def stream(self) -> bool:
        """Whether the client asked for a stream."""
        return self.body.get("stream") is True

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body.get("model", ""))


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that broke a rule of the service, or that the script had no answer for."""

    request: RecordedRequest
    status: int
    message: str
    """The text that the client was given."""


class RequestLog:
    """The requests in order of arrival; grows in the server's thread, is read in the test's."""

    def __init__(self) -> None:
        """Start an empty log."""
        self.requests: list[RecordedRequest] = []
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, Signal]] = []

    def add(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> RecordedRequest:
        """Record a request; `announce` then tells those who wait for it."""
        request = RecordedRequest(len(self.requests), method, path, headers, raw)
        self.requests.append(request)
        return request

    def announce(self) -> None:
        """Wake those whose number of requests has arrived."""
        with self._lock:
            due = [signal for count, signal in self._waiting if count <= len(self.requests)]
            self._waiting = [entry for entry in self._waiting if entry[1] not in due]
        for signal in due:
            signal.set()

    def signal_for(self, count: int) -> Signal:
        """A signal that is set once so many requests have arrived."""
        signal = Signal(f"request number {count} (there are {len(self.requests)})")
        with self._lock:
            if len(self.requests) < count:
                self._waiting.append((count, signal))
                return signal
        signal.set()
        return signal

    async def wait_for(self, count: int, within: float = DEFAULT_WAIT) -> None:
        """Wait until so many requests have arrived, in an event loop."""
        await self.signal_for(count).wait(within)
