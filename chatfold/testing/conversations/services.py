"""The three services of random conversations: their wire forms, checks and events, without a connection.

A request is made as the provider makes it and checked as its loopback server checks it; what the server would send is
read by the provider's own reader. Only the SDK's transport is missing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from random import Random
from typing import Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from chatfold.testing.conversations.answers import Speaker
from chatfold.testing.servers.anthropic_prefix import Coverage
from chatfold.testing.servers.anthropic_server import AnthropicServer
from chatfold.testing.servers.chat_server import OpenAIChatServer
from chatfold.testing.servers.checks import RequestRefused
from chatfold.testing.servers.recording import RecordedRequest
from chatfold.testing.servers.responses_server import OpenAIResponsesServer
from chatfold.testing.servers.server import LoopbackServer
from chatfold.testing.servers.wire import Plan
from generation.errors import ClassifiedError, ProviderError
from generation.prompt import BuiltPrompt
from generation.prompt_types import ModelRequest
from generation.providers import anthropic, anthropic_wire, openai_chat, openai_responses, openai_wire
from generation.providers.contract import StreamPart, UsageSoFar
from generation.providers.sdk_errors import stream_closed

_HEADERS: Final = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01"}

ERRORS: Final = (
    ClassifiedError(kind="overloaded", message="overloaded", retryable=True),
    ClassifiedError(kind="rate_limit", message="slow down", retryable=True, retry_after_us=700_000),
    ClassifiedError(kind="auth", message="wrong key"),
)


class Asked(NamedTuple):
    """What an attempt asks for by its log: the whole prompt, and a response that the service is known to have lost."""

    prompt: BuiltPrompt
    lost: str | None


class Said:
    """An object of an SDK: what a service sent, by attributes; what it did not send is None."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        return _said(self._fields.get(name))

    def __bool__(self) -> bool:
        return bool(self._fields)

    def model_dump(self, *, mode: str, exclude_unset: bool = False, exclude_none: bool = False) -> dict[str, Any]:
        """Return it as it was sent, without its nulls where that is asked for."""
        del mode, exclude_unset
        return {name: each for name, each in self._fields.items() if each is not None or not exclude_none}


def _said(value: Any) -> Any:
    if isinstance(value, dict):
        return Said(value)
    return [_said(each) for each in value] if isinstance(value, list) else value


class _Reader(Protocol):
    """Reads the events of one answer."""

    def read(self, event: Any) -> list[Any]: ...


class Service:
    """A provider that is its own service.

    Args:
        name: Which one.
        random: Decides what it answers, and how.
        covers: What signatures of thinking cover.
        complain: Is told of each request that the service would refuse.
        asked: Tells what the attempt that runs asks for.

    Attributes:
        calm: Nothing goes wrong any more.
        goes_on: See the contract of providers.
    """

    def __init__(
        self,
        name: str,
        random: Random,
        *,
        covers: Coverage,
        complain: Callable[[str], None],
        asked: Callable[[], Asked],
    ) -> None:
        self.name: Final = name
        self.goes_on: Final = name == openai_wire.RESPONSES
        self._asked_for = asked
        self.calm = False
        self._random = random
        self._complain = complain
        self._speaker = Speaker(name, random)
        self._server = _server(name)
        self._asked = 0
        if isinstance(self._server, AnthropicServer):
            self._server.issued.covers = covers

    async def close(self) -> None:
        """Close nothing: it outlives the processes that ask it."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Answer, fail, or break off. See the contract of providers.

        Raises:
            ProviderError: It was drawn so, or the request is none that the service takes.
        """
        if not self.calm and self._random.random() < 0.06:
            raise ProviderError(self._random.choice(ERRORS))
        asked, reader = self._asking(request)
        body, more = {**asked, "stream": True}, True
        said = body.get("messages", [])
        while more:
            recorded, plan = self._answer(request, body, resumed=body.get("messages", said) is not said)
            for frame in self._sent(plan):
                await asyncio.sleep(self._pause())
                for part in reader.read(Said(frame)):
                    yield part
            if isinstance(reader, openai_chat._Reader):
                for part in reader.finish():
                    yield part
            elif not reader.whole:  # type: ignore[attr-defined]
                raise stream_closed(self.name)
            self._server.completed(recorded, plan)
            if more := isinstance(reader, anthropic._Reader) and reader.paused:
                body = {**body, "messages": [*said, {"role": "assistant", "content": reader.handed_back()}]}

    def _answer(self, request: ModelRequest, body: dict[str, Any], *, resumed: bool) -> tuple[RecordedRequest, Plan]:
        """Check a request, and return what is sent in answer."""
        sent = json.loads(json.dumps(body))
        recorded = RecordedRequest(
            index=self._asked, method="POST", path=self._server.path, headers=_HEADERS, raw=b"", body=sent
        )
        self._asked += 1
        try:
            self._forget_some()
            self._server.check_body(recorded)
            self._check_chain(request, recorded)
        except RequestRefused as refused:
            if refused.code == "previous_response_not_found":
                self._check_known(request)
                lost = ClassifiedError(kind="config", message="It is gone.", chain_broken=True, retryable=True)
                raise ProviderError(lost) from refused
            self._complain(f"{self.name} refused a request: {refused}")
            raise ProviderError(ClassifiedError(kind="config", message="refused")) from refused
        return recorded, self._server.plan(recorded, self._speaker.answer(request, resumed=resumed, calm=self.calm))

    def _forget_some(self) -> None:
        """Keep the responses no more, as the service does after a while."""
        if isinstance(self._server, OpenAIResponsesServer) and not self.calm and self._random.random() < 0.1:
            self._server.issued.forget()

    def _check_known(self, request: ModelRequest) -> None:
        """See that nobody goes on from a response of which it is known that it is gone."""
        if request.continues == self._asked_for().lost:
            self._complain(f"{request.continues} is gone on from again, though it is known to be lost")

    def _check_chain(self, request: ModelRequest, recorded: RecordedRequest) -> None:
        """See that a request which goes on from a response comes to what the whole conversation would say."""
        if request.continues is None or not isinstance(self._server, OpenAIResponsesServer):
            return
        had = [item.model_dump(exclude_none=True) for item in self._server.given(recorded)]
        whole = openai_wire.responses_input(
            replace(request, messages=self._asked_for().prompt.messages, continues=None)
        )
        if spoken(had) != spoken(whole):
            self._complain(f"{self.name} had {spoken(had)}, the conversation is {spoken(whole)}")

    def _sent(self, plan: Plan) -> Iterator[dict[str, Any]]:
        """Yield what the events hold; where the stream is cut, not all."""
        frames = plan.frames
        cut = not self.calm and self._random.random() < 0.08
        if cut:
            frames = frames[: self._random.randrange(len(frames))]
        for frame in frames:
            for line in frame.data.splitlines():
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])
        if cut and self.name == openai_wire.CHAT:
            raise stream_closed(self.name)

    def _pause(self) -> float:
        """Return the seconds before the next event: now and then so many that something happens meanwhile."""
        return self._random.random() * (0.002 if self.calm or self._random.random() < 0.9 else 1.0)

    def _asking(self, request: ModelRequest) -> tuple[dict[str, Any], _Reader]:
        """Return the body of a request, and what reads its answer, as the provider makes both."""
        match self._server:
            case AnthropicServer():
                body, prefix = anthropic_wire.body_and_prefix(request)
                return body, anthropic._Reader(request.model, prefix)
            case OpenAIResponsesServer():
                return openai_wire.responses_body(request), openai_responses._Reader(request.model, lambda: 0)
            case _:
                return openai_wire.chat_body(request, limit_name="max_completion_tokens"), openai_chat._Reader()


def spoken(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what items of a conversation hold of people and tools, in order: kinds and texts, without ids.

    Blank texts are left out, which the service has and nobody sends; and reasoning, which may have stood before one.
    """
    told = []
    for item in items:
        content = item.get("content", item.get("output", item.get("arguments")))
        if isinstance(content, list):
            shown = [each.get("text") or sorted(each.items()) for each in content]
        else:
            shown = [content]
        kind = item.get("role", item.get("type"))
        if kind not in ("reasoning", "assistant") or any(map(_is_said, shown)):
            told.append(f"{kind}: {shown}")
    return told


def _is_said(content: object) -> bool:
    return content is not None and (not isinstance(content, str) or bool(content.strip()))


def _server(name: str) -> LoopbackServer:
    if name == anthropic_wire.NAME:
        return AnthropicServer([])
    return OpenAIResponsesServer([]) if name == openai_wire.RESPONSES else OpenAIChatServer([])
