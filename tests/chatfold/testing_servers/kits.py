"""One way to ask all three servers through their official SDKs, so that a test can be written once.

Owns the reading of the SDKs' answers; what is asked and expected is the tests'.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from anthropic.types import RawMessageStreamEvent

from chatfold.testing.servers import AnthropicServer, LoopbackServer, OpenAIChatServer, OpenAIResponsesServer, Usage

__all__ = ["KITS", "Heard", "Kit"]


@dataclass
class Heard:
    """What a client understood of an answer."""

    id: str = ""
    model: str = ""
    text: str = ""
    reasoning: str = ""
    refusal: str | None = None
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name and arguments by the provider's id."""
    stop: str | None = None
    usage: Usage | None = None
    pieces: list[str] = field(default_factory=list)
    """The deltas in order, of whatever kind."""
    on_piece: Callable[[], Awaitable[None]] | None = None

    async def piece(self, text: str) -> None:
        self.pieces.append(text)
        if self.on_piece is not None:
            await self.on_piece()


@dataclass(frozen=True)
class Kit:
    """A server, and how to ask it."""

    name: str
    server: Callable[..., LoopbackServer]
    client: Callable[[str], Any]
    endpoint: str
    """Where the SDK posts to, relative to its base URL."""
    body: dict[str, Any]
    """The smallest request."""
    read: Callable[[Any, Heard], None]
    read_stream: Callable[[Any, Heard], Awaitable[None]]
    create: Callable[[Any], Any]
    broken: tuple[type[Exception], ...]
    """What the SDK raises when the connection breaks in the middle of a stream."""
    errors: Any
    """The SDK's module."""

    async def ask(
        self, server: LoopbackServer, *, stream: bool = True, text: str = "Hello.", heard: Heard | None = None
    ) -> Heard:
        """Ask once, with a client of its own."""
        heard = Heard() if heard is None else heard
        async with self.client(server.base_url) as client:
            body = {**self.body, **self.saying(text), "stream": stream}
            if self.name == "chat" and stream:
                body["stream_options"] = {"include_usage": True}
            answer = await self.create(client)(**body)
            if stream:
                await self.read_stream(answer, heard)
            else:
                self.read(answer, heard)
        return heard

    def saying(self, text: str) -> dict[str, Any]:
        return {"input": text} if self.name == "responses" else {"messages": [{"role": "user", "content": text}]}

    async def post(self, server: LoopbackServer, body: dict[str, Any]) -> object:
        """Send a body as it is, through the SDK."""
        async with self.client(server.base_url) as client:
            return await client.post(self.endpoint, cast_to=object, body=body)

    async def refused(self, changes: dict[str, Any], words: str, param: str | None) -> None:
        """Send the smallest request with changes (``...`` takes a field away): OpenAI's servers refuse it so."""
        body = {name: value for name, value in {**self.body, **changes}.items() if value is not ...}
        async with self.server([]) as server:
            with pytest.raises(openai.BadRequestError) as caught:
                await self.post(server, body)
        error = caught.value
        assert words in error.message
        assert error.type == "invalid_request_error"
        assert param is None or error.param == param
        assert [refusal.message in error.message for refusal in server.refused] == [True]


def _anthropic_usage(usage: Any) -> Usage:
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cache_read=usage.cache_read_input_tokens,
        cache_write=usage.cache_creation_input_tokens,
        reasoning=usage.output_tokens_details.thinking_tokens,
    )


def _read_anthropic(message: anthropic.types.Message, heard: Heard) -> None:
    heard.id, heard.model, heard.stop = message.id, message.model, message.stop_reason
    heard.usage = _anthropic_usage(message.usage)
    heard.refusal = None if message.stop_details is None else message.stop_details.explanation
    for block in message.content:
        if block.type == "text":
            heard.text += block.text
        elif block.type == "thinking":
            heard.reasoning += block.thinking
        elif block.type == "tool_use":
            heard.calls[block.id] = (block.name, str(block.input))


async def _stream_anthropic(stream: anthropic.AsyncStream[RawMessageStreamEvent], heard: Heard) -> None:
    call = ""
    async for event in stream:
        match event.type:
            case "message_start":
                heard.id, heard.model = event.message.id, event.message.model
            case "content_block_start" if event.content_block.type == "tool_use":
                call = event.content_block.id
                heard.calls[call] = (event.content_block.name, "")
            case "content_block_delta":
                await _anthropic_delta(event.delta, heard, call)
            case "message_delta":
                heard.stop, heard.usage = event.delta.stop_reason, _anthropic_usage(event.usage)
                heard.refusal = None if event.delta.stop_details is None else event.delta.stop_details.explanation
            case _:
                pass


async def _anthropic_delta(delta: Any, heard: Heard, call: str) -> None:
    if delta.type == "text_delta":
        heard.text += delta.text
        await heard.piece(delta.text)
    elif delta.type == "thinking_delta":
        heard.reasoning += delta.thinking
        await heard.piece(delta.thinking)
    elif delta.type == "input_json_delta" and delta.partial_json:
        name, arguments = heard.calls[call]
        heard.calls[call] = (name, arguments + delta.partial_json)
        await heard.piece(delta.partial_json)


def _openai_usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    chat = hasattr(usage, "prompt_tokens")
    details = usage.prompt_tokens_details if chat else usage.input_tokens_details
    outputs = usage.completion_tokens_details if chat else usage.output_tokens_details
    total, output = (
        (usage.prompt_tokens, usage.completion_tokens) if chat else (usage.input_tokens, usage.output_tokens)
    )
    assert usage.total_tokens == total + output
    return Usage(
        input=total - details.cached_tokens - details.cache_write_tokens,
        output=output,
        cache_read=details.cached_tokens,
        cache_write=details.cache_write_tokens,
        reasoning=outputs.reasoning_tokens,
    )


def _read_response(response: openai.types.responses.Response, heard: Heard) -> None:
    heard.id, heard.model, heard.text = response.id, response.model, response.output_text
    heard.stop = response.incomplete_details.reason if response.incomplete_details else response.status
    heard.usage = _openai_usage(response.usage)
    for item in response.output:
        if item.type == "reasoning":
            heard.reasoning += "".join(part.text for part in item.summary)
        elif item.type == "function_call":
            heard.calls[item.call_id] = (item.name, item.arguments)
        elif item.type == "message":
            heard.refusal = next((part.refusal for part in item.content if part.type == "refusal"), heard.refusal)


async def _stream_response(
    stream: openai.AsyncStream[openai.types.responses.ResponseStreamEvent], heard: Heard
) -> None:
    number = 0
    async for event in stream:
        assert event.sequence_number == number
        number += 1
        match event.type:
            case (
                "response.output_text.delta"
                | "response.refusal.delta"
                | "response.reasoning_summary_text.delta"
                | "response.function_call_arguments.delta"
            ):
                await heard.piece(event.delta)
            case "response.completed" | "response.incomplete":
                _read_response(event.response, heard)
            case "response.failed":
                assert event.response.error is not None
                raise openai.APIError(event.response.error.message, httpx2.Request("POST", "/"), body=event.response)
            case _:
                pass


def _read_completion(completion: openai.types.chat.ChatCompletion, heard: Heard) -> None:
    choice = completion.choices[0]
    heard.id, heard.model, heard.stop = completion.id, completion.model, choice.finish_reason
    heard.usage = _openai_usage(completion.usage)
    heard.text, heard.refusal = choice.message.content or "", choice.message.refusal
    heard.reasoning = getattr(choice.message, "reasoning_content", "")
    for call in choice.message.tool_calls or []:
        assert call.type == "function"
        heard.calls[call.id] = (call.function.name, call.function.arguments)


async def _stream_completion(stream: openai.AsyncStream[openai.types.chat.ChatCompletionChunk], heard: Heard) -> None:
    by_index: dict[int, str] = {}
    async for chunk in stream:
        heard.id, heard.model = chunk.id, chunk.model
        heard.usage = _openai_usage(chunk.usage) or heard.usage
        for choice in chunk.choices:
            heard.stop = choice.finish_reason or heard.stop
            await _chat_delta(choice.delta, heard, by_index)


async def _chat_delta(delta: Any, heard: Heard, by_index: dict[int, str]) -> None:
    for call in delta.tool_calls or []:
        if call.id is not None:
            by_index[call.index] = call.id
            heard.calls[call.id] = (call.function.name, "")
        elif call.function.arguments:
            name, arguments = heard.calls[by_index[call.index]]
            heard.calls[by_index[call.index]] = (name, arguments + call.function.arguments)
            await heard.piece(call.function.arguments)
    if delta.content:
        heard.text += delta.content
        await heard.piece(delta.content)
    if delta.refusal:
        heard.refusal = (heard.refusal or "") + delta.refusal
        await heard.piece(delta.refusal)
    if thought := getattr(delta, "reasoning_content", None):
        heard.reasoning += thought
        await heard.piece(thought)


# Loopback speaks plain HTTP; a client that loads no certificates is made thirty times faster.


def _anthropic_client(url: str) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    return anthropic.AsyncAnthropic(base_url=url, api_key="test", max_retries=0, http_client=http)


def _openai_client(url: str) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(base_url=url, api_key="test", max_retries=0, http_client=http)


ANTHROPIC = Kit(
    "anthropic",
    AnthropicServer,
    _anthropic_client,
    "/v1/messages",
    {"model": "claude-test", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello."}]},
    _read_anthropic,
    _stream_anthropic,
    lambda client: client.messages.create,
    (httpx2.RemoteProtocolError, anthropic.APIConnectionError),
    anthropic,
)
RESPONSES = Kit(
    "responses",
    OpenAIResponsesServer,
    _openai_client,
    "/responses",
    {"model": "gpt-test", "input": "Hello."},
    _read_response,
    _stream_response,
    lambda client: client.responses.create,
    (openai.APIConnectionError,),
    openai,
)
CHAT = Kit(
    "chat",
    OpenAIChatServer,
    _openai_client,
    "/chat/completions",
    {"model": "gpt-test", "messages": [{"role": "user", "content": "Hello."}]},
    _read_completion,
    _stream_completion,
    lambda client: client.chat.completions.create,
    (openai.APIConnectionError,),
    openai,
)
KITS = [ANTHROPIC, RESPONSES, CHAT]
