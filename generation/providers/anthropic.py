"""The ``anthropic`` provider: Messages through the official SDK, streaming.

Owns reading the stream; what is sent is made in ``anthropic_wire``, errors are read in ``sdk_errors``. Importing this
module imports the SDK.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from anthropic import AsyncAnthropic, CredentialsError, DefaultAsyncHttpxClient

from events.content import Json
from events.messages import FinishReason, Usage
from generation.prompt_types import ModelRequest
from generation.providers.anthropic_prefix import signed_behind
from generation.providers.anthropic_wire import NAME, THINKING, body_and_prefix
from generation.providers.base_url import check_where
from generation.providers.capture import HOOKS
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    Finish,
    ProviderResult,
    ReasoningDelta,
    ReasoningEnd,
    SourceFound,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from generation.providers.metadata import tag
from generation.providers.sdk_errors import classified, missing_key, stream_closed
from generation.providers.transport import transport_timeout
from generation.providers.usage import anthropic_usage
from store.clock import wall_clock

MOST_PAUSES: Final = 10
"""How often a paused answer goes on; then it counts as cut at its length."""

_REASONS: Final[dict[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}
_PAUSED: Final = {"stop_reason": "pause_turn"}
_UNKNOWN: Final = "unknown"


class AnthropicProvider:
    """Calls models of Anthropic.

    Args:
        base_url: Where the service is; None: the SDK's default, or ANTHROPIC_BASE_URL.
        api_key: The key; None: ANTHROPIC_API_KEY and what else the SDK looks for.
        timeout: Seconds that the transport waits for data.
        clock: Gives the time in microseconds UTC.

    Raises:
        InvalidBaseUrl: The base URL is none.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        check_where(base_url, "ANTHROPIC_BASE_URL")
        self._clock: Final = clock
        self._keyless = ""
        self._client: AsyncAnthropic | None = None
        try:
            limits = transport_timeout(timeout)
            http = DefaultAsyncHttpxClient(timeout=limits, event_hooks=HOOKS)
            self._client = AsyncAnthropic(
                base_url=base_url, api_key=api_key, timeout=limits, max_retries=0, http_client=http
            )
        except CredentialsError as exc:  # reported by each call, as a missing key is
            self._keyless = str(exc)

    @property
    def name(self) -> str:
        """The provider's name in model references."""
        return NAME

    async def close(self) -> None:
        """Close connections."""
        if self._client is not None:
            await self._client.close()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Call the model once; see the contract.

        Raises:
            ProviderError: The call failed.
        """
        client = self._client
        if client is None or not (client.api_key or client.auth_token or client.credentials):
            raise missing_key(NAME, self._keyless)
        async with classified(NAME, self._clock):
            payload, prefix = body_and_prefix(request)
            reader = _Reader(request.model, prefix)
            known = {name: payload.pop(name) for name in ("model", "messages", "max_tokens")}
            said, more = known["messages"], True
            while more:
                async with await client.messages.create(**known, stream=True, extra_body=payload) as events:
                    if known["messages"] is said:
                        yield UsageSoFar(usage=Usage())
                    async for event in events:
                        for part in reader.read(event):
                            yield part
                if not reader.whole:
                    raise stream_closed(NAME)
                if more := reader.paused:
                    # In the middle of its searches the service wants its answer so far back, and goes on with it.
                    known["messages"] = [*said, {"role": "assistant", "content": reader.handed_back()}]


class _Block:
    """A block that is open: its kind, its number in the answer, and what its deltas gave."""

    def __init__(self, number: int, raw: Any) -> None:
        self.number = number
        self.raw = raw
        self.kind: str = raw.type
        self.pieces: list[str] = []
        self.citations: list[Json] = []
        self.signature = ""

    @property
    def arguments(self) -> str:
        """The JSON text of a call's input."""
        given = "".join(self.pieces)
        return given or json.dumps(self.raw.input or {}, ensure_ascii=False)


class _Reader:
    """Reads the events of one answer: of one stream, or where it paused of several, which follow each other.

    Their types are open: kinds that are not known yet are passed over.

    Args:
        model: The model that was asked.
        prefix: The digest of the conversation that it was asked to go on.
    """

    def __init__(self, model: str, prefix: str = "") -> None:
        self._model = model
        self._prefix = prefix
        self._kept: list[dict[str, Any]] = []
        """The blocks so far as the service wants them back where it pauses, of those that it does not only the type."""
        self._pauses = 0
        self._spent = Usage()
        self._urls: set[str] = set()
        self.paused = False
        self._blocks: dict[int, _Block] = {}
        self._next = 0
        self._usage = Usage()
        self._response_id: str | None = None
        self._answered_by: str | None = None
        self._reason: FinishReason = "unknown"
        self._explanation: str | None = None
        self._stop: Json = None
        self.whole = False

    def read(self, event: Any) -> list[StreamPart | UsageSoFar]:
        """Return the parts that an event stands for."""
        match event.type:
            case "message_start":
                return [self._start(event.message)]
            case "content_block_start":
                return list(self._open(event.index, event.content_block))
            case "content_block_delta":
                block = self._blocks.get(event.index)
                return list(self._delta(block, event.delta)) if block is not None else []
            case "content_block_stop":
                block = self._blocks.pop(event.index, None)
                return list(self._close(block)) if block is not None else []
            case "message_delta":
                self._stopped(event)
                return []
            case "message_stop":
                self.whole = True
                self.paused = self._goes_on()
                return [] if self.paused else [self._finish()]
            case _:
                return []

    def _start(self, message: Any) -> UsageSoFar:
        self._response_id, self._answered_by = message.id, message.model
        self._usage = anthropic_usage(getattr(message, "usage", None), Usage())
        return UsageSoFar(
            usage=self._spent + self._usage, response_id=self._response_id, context_tokens=self._context_tokens
        )

    @property
    def _context_tokens(self) -> int | None:
        return self._usage.context if self._pauses else None

    def _goes_on(self) -> bool:
        """Whether the answer paused and can go on; what it may not leave open is a call of the client's."""
        if self._stop != _PAUSED:
            return False
        kinds = {block["type"] for block in self._kept}
        if "tool_use" in kinds:
            self._reason = "tool_calls"
        elif self._pauses >= MOST_PAUSES:
            self._reason = "length"
        else:
            return _UNKNOWN not in kinds and not kinds <= THINKING
        return False

    def handed_back(self) -> list[dict[str, Any]]:
        """Return the blocks of an answer that paused, and read on."""
        self._pauses += 1
        self._spent += self._usage
        self._usage, self.whole, self.paused = Usage(), False, False
        blocks = self._kept.copy()
        while blocks[-1]["type"] in THINKING:
            blocks.pop()  # no message may end so
        return blocks

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _open(self, index: int, raw: Any) -> list[StreamPart]:
        block = self._blocks[index] = _Block(self._number(), raw)
        match block.kind:
            case "text" if raw.text:
                block.pieces.append(raw.text)
                return [TextDelta(block=block.number, text=raw.text)]
            case "thinking":
                block.signature = raw.signature or ""
                block.pieces.append(raw.thinking or "")
                return [ReasoningDelta(block=block.number, text=raw.thinking or "")]
            case "tool_use":
                return [CallDelta(block=block.number, text="", name=raw.name, id=raw.id)]
            case _:
                return []

    def _delta(self, block: _Block, delta: Any) -> list[StreamPart]:
        match delta.type:
            case "text_delta":
                block.pieces.append(delta.text)
                return [TextDelta(block=block.number, text=delta.text)]
            case "thinking_delta":
                block.pieces.append(delta.thinking)
                return [ReasoningDelta(block=block.number, text=delta.thinking)]
            case "signature_delta":
                block.signature += delta.signature
                return []
            case "input_json_delta":
                block.pieces.append(delta.partial_json)
                shown = delta.partial_json and block.kind == "tool_use"
                return [CallDelta(block=block.number, text=delta.partial_json)] if shown else []
            case "citations_delta":
                block.citations.append(_plain(delta.citation))
                return self._source(getattr(delta.citation, "url", None), getattr(delta.citation, "title", None))
            case _:
                return []

    def _source(self, url: str | None, title: str | None) -> list[StreamPart]:
        """Return a source, once of each page."""
        if not url or url in self._urls:
            return []
        self._urls.add(url)
        number = self._number()
        return [SourceFound(block=number, source_id=f"source_{number}", url=url, title=title)]

    def _close(self, block: _Block) -> list[StreamPart]:
        number, raw, text = block.number, block.raw, "".join(block.pieces)
        cited: dict[str, Json] = {"citations": block.citations} if block.citations else {}
        match block.kind:
            case "text":
                if text.strip():
                    self._kept.append({"type": "text", "text": text, **cited})
                return [TextEnd(block=number, metadata=self._tag(cited) if cited else None)]
            case "thinking":
                if not block.signature:
                    return [ReasoningEnd(block=number)]  # it cannot come back
                self._kept.append({"type": "thinking", "thinking": text, "signature": block.signature})
                return [ReasoningEnd(block=number, metadata=self._signed({"signature": block.signature}))]
            case "redacted_thinking":
                self._kept.append({"type": "redacted_thinking", "data": raw.data})
                return [ReasoningEnd(block=number, metadata=self._signed({"data": raw.data}), redacted=True)]
            case "tool_use":
                self._kept.append({"type": "tool_use"})
                return [CallEnd(block=number, id=raw.id, name=raw.name, arguments=block.arguments)]
            case "server_tool_use":
                return [self._server_call(block)]
            case kind if kind.endswith("_tool_result"):
                return self._server_result(block)
            case _:
                self._kept.append({"type": _UNKNOWN})
                return []

    def _server_call(self, block: _Block) -> CallEnd:
        raw = block.raw
        plain = {**_plain(raw), "input": _loads(block.arguments)}
        self._kept.append(plain)
        return CallEnd(
            block=block.number,
            id=raw.id,
            name=raw.name,
            arguments=block.arguments,
            metadata=self._tag(plain),
            provider_executed=True,
        )

    def _server_result(self, block: _Block) -> list[StreamPart]:
        plain = _plain(block.raw)
        self._kept.append(plain)
        content = plain.get("content")
        result = ProviderResult(
            block=block.number,
            call_id=block.raw.tool_use_id,
            name=block.kind.removesuffix("_tool_result"),
            output=content,
            is_error=isinstance(content, dict) and "error_code" in content,
            metadata=self._tag(plain),
        )
        found = [page for page in content if isinstance(page, dict)] if isinstance(content, list) else []
        sources = [
            source for page in found for source in self._source(_text(page.get("url")), _text(page.get("title")))
        ]
        return [result, *sources]

    def _signed(self, data: Json) -> Json:
        return signed_behind(self._tag(data), self._prefix)

    def _tag(self, data: Json) -> Json:
        return tag(NAME, self._model, data)

    def _stopped(self, event: Any) -> None:
        self._usage = anthropic_usage(getattr(event, "usage", None), self._usage)
        stop = event.delta.stop_reason
        self._reason = _REASONS.get(stop or "", "unknown")
        self._stop = {"stop_reason": stop} if stop else None
        details = getattr(event.delta, "stop_details", None)
        if details is not None:
            self._explanation = getattr(details, "explanation", None)

    def _finish(self) -> Finish:
        spent = self._spent + self._usage
        return Finish(
            reason=self._reason,
            usage=spent if spent != Usage() else None,
            response_id=self._response_id,
            model=self._answered_by,
            metadata=self._stop,
            explanation=self._explanation,
            context_tokens=self._context_tokens,
        )


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _plain(raw: Any) -> dict[str, Json]:
    plain: dict[str, Json] = raw.model_dump(mode="json", exclude_unset=True)
    return plain


def _loads(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return {}
    return value
