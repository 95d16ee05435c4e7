"""The ``openai-chat`` provider: Chat Completions through the official SDK, streaming, for any compatible server.

Compatible servers differ: some leave out ids of calls, repeat them, number calls wrongly, or send reasoning in a field
of their own. Owns reading the stream; what is sent is made in ``openai_wire``. Importing this module imports the SDK.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final

from openai import AsyncStream
from openai.types.chat import ChatCompletionChunk

from events.messages import FinishReason, Usage
from generation.prompt_types import ModelRequest
from generation.providers.contract import (
    CallDelta,
    CallEnd,
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    StreamPart,
    TextDelta,
    TextEnd,
    UsageSoFar,
)
from generation.providers.openai_client import make_client, other_service
from generation.providers.openai_wire import CHAT as NAME
from generation.providers.openai_wire import chat_body
from generation.providers.sdk_errors import classified, missing_key, stream_closed
from generation.providers.usage import openai_usage
from generation.repair import parse_object
from store.clock import wall_clock

_REASONS: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}


class _Chunks(AsyncStream[ChatCompletionChunk]):
    """The SDK's stream, which swallows the last event; this one remembers that it came."""

    done = False

    async def _iter_events(self) -> AsyncIterator[Any]:
        async for event in super()._iter_events():
            self.done = self.done or event.data.startswith("[DONE]")
            yield event


class OpenAIChatProvider:
    """Calls models through Chat Completions.

    Args:
        base_url: Where the server is; None: the SDK's default, or OPENAI_BASE_URL.
        api_key: The key; None: OPENAI_API_KEY, and none at all for a service that is not OpenAI's own.
        timeout: Seconds that the transport waits for data.
        clock: Gives the time in microseconds UTC.
        limit_name: What the server calls the limit of output tokens. None: ``max_completion_tokens`` at OpenAI's own
            service, else ``max_tokens``, which compatible servers know.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 600.0,
        clock: Callable[[], int] = wall_clock,
        limit_name: str | None = None,
    ) -> None:
        self._client: Final = make_client(base_url=base_url, api_key=api_key, timeout=timeout)
        self._clock: Final = clock
        self._limit_name: Final = limit_name or ("max_tokens" if other_service(base_url) else "max_completion_tokens")

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
        if self._client is None:
            raise missing_key(NAME)
        reader = _Reader()
        async with classified(NAME, self._clock):
            payload = chat_body(request, limit_name=self._limit_name)
            # As to Responses, the conversation goes past the SDK's checks of its own arguments.
            known: dict[str, Any] = {"model": payload.pop("model"), "messages": []}
            create = self._client.chat.completions.with_streaming_response.create
            async with create(**known, stream=True, extra_body=payload) as response:
                chunks = await response.parse(to=_Chunks)
                yield UsageSoFar(usage=Usage())
                async for chunk in chunks:
                    for part in reader.read(chunk):
                        yield part
        if not chunks.done:
            raise stream_closed(NAME)
        for part in reader.finish():
            yield part


class _Call:
    """A call that is growing."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id = ""
        self.name = ""
        self.arguments = ""


class _Reader:
    """Reads the chunks of one stream."""

    def __init__(self) -> None:
        self._next = 0
        self._open: tuple[str, int] | None = None
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._usage: Usage | None = None
        self._reason: FinishReason = "unknown"
        self._refusal: list[str] = []
        self._response_id: str | None = None
        self._answered_by: str | None = None

    def read(self, chunk: Any) -> list[StreamPart | UsageSoFar]:
        """Return the parts that a chunk stands for."""
        self._response_id = chunk.id or self._response_id
        self._answered_by = chunk.model or self._answered_by
        parts: list[StreamPart | UsageSoFar] = []
        if chunk.usage is not None and (told := openai_usage(chunk.usage, "prompt", "completion")) is not None:
            self._usage = told
            parts.append(UsageSoFar(usage=told))
        for choice in chunk.choices or []:
            if isinstance(choice.finish_reason, str):
                self._reason = _REASONS.get(choice.finish_reason, "unknown")
            if choice.delta is not None:
                parts.extend(self._delta(choice.delta))
        return parts

    def _delta(self, delta: Any) -> list[StreamPart]:
        parts: list[StreamPart] = []
        thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
        if isinstance(thought, str) and thought:
            parts.extend(self._switch("reasoning"))
            parts.append(ReasoningDelta(block=self._current, text=thought))
        if delta.content:
            parts.extend(self._switch("text"))
            parts.append(TextDelta(block=self._current, text=_text(delta.content)))
        if delta.refusal:
            self._refusal.append(_text(delta.refusal))
        for call in delta.tool_calls or []:
            parts.extend(self._close())
            parts.append(self._call(call))
        return parts

    @property
    def _current(self) -> int:
        return self._open[1] if self._open is not None else self._next

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _switch(self, kind: str) -> list[StreamPart]:
        """Make ``kind`` the open block, ending another one."""
        if self._open is not None and self._open[0] == kind:
            return []
        ended = self._close()
        self._open = (kind, self._number())
        return ended

    def _close(self) -> list[StreamPart]:
        if self._open is None:
            return []
        (kind, number), self._open = self._open, None
        return [TextEnd(block=number) if kind == "text" else ReasoningEnd(block=number)]

    def _call(self, raw: Any) -> CallDelta:
        function = raw.function
        name, text = _text(getattr(function, "name", None)), _text(getattr(function, "arguments", None))
        call_id = _text(raw.id)
        call = self._find(raw.index if isinstance(raw.index, int) else None, call_id, name)
        new_id, new_name = call_id if not call.id else "", name if not call.name else ""
        call.id, call.name = call.id or new_id, call.name or new_name
        call.arguments += text
        return CallDelta(block=call.number, text=text, name=new_name, id=new_id)

    def _find(self, index: int | None, call_id: str, name: str) -> _Call:
        """Return the call that a delta belongs to.

        Another id begins another call, and so does a name: without an index another one, and one after whole arguments,
        where no id says that the call is the same. Servers repeat ids and names in each delta.
        """
        call = self._by_index.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if call is None or self._is_other(call, index, call_id, name):
            call = _Call(self._number())
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    @staticmethod
    def _is_other(call: _Call, index: int | None, call_id: str, name: str) -> bool:
        if call_id and call_id != call.id:
            return bool(call.id) or (index is None and bool(name))
        if call_id or not name:
            return False
        if index is None and name != call.name:
            return True
        return call.arguments.endswith("}") and parse_object(call.arguments) is not None

    def finish(self) -> list[StreamPart]:
        """Return the parts that end the answer."""
        parts = self._close()
        parts.extend(
            CallEnd(block=call.number, id=call.id, name=call.name, arguments=call.arguments or "{}")
            for call in self._calls
        )
        reason = self._reason
        if self._refusal:
            reason = "refusal"
        elif self._calls and reason == "stop":
            reason = "tool_calls"  # what some compatible servers say after calls
        return [
            *parts,
            Finish(
                reason=reason,
                usage=self._usage,
                response_id=_text(self._response_id) or None,
                model=_text(self._answered_by) or None,
                explanation="".join(self._refusal) or None,
            ),
        ]


def _text(told: Any) -> str:
    """Return what stands where the protocol has a text: some servers send numbers, lists of texts, or objects there."""
    if type(told) is str:
        return told
    if told is None:
        return ""
    if isinstance(told, list):
        return "".join(_text(piece.get("text") if isinstance(piece, dict) else piece) for piece in told)
    return json.dumps(told, ensure_ascii=False, default=str)
