"""What the providers' tests share: a conversation that is sent, collected and folded like the engine does it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias

from chatfold.testing.servers import AnthropicServer, LoopbackServer, OpenAIChatServer, OpenAIResponsesServer, Script
from events.content import Content, Json
from events.ids import MessageId, call_key
from events.messages import Message, Step, Usage
from events.parts import Part, TextPart, ToolCallPart, ToolResultPart
from events.records import ToolPolicy
from events.state import ChatState, initial_state
from events.transcript import Messages, TranscriptMessage, empty_transcript
from generation.assemble import Assembler
from generation.prompt import build_prompt
from generation.prompt_types import ModelRequest, PromptMessage, PromptText, ToolSpec
from generation.providers.contract import Provider, StreamPart, UsageSoFar
from generation.providers.native import ProviderTool
from generation.providers.registry import ProviderSettings, make_provider

MODEL = "model-one"
WEATHER = ToolSpec(
    name="get_weather",
    description="Tell the weather.",
    schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TOOLS = {"get_weather": ToolPolicy(name="get_weather", crash="rerun")}
SERVERS: dict[str, type[LoopbackServer]] = {
    "anthropic": AnthropicServer,
    "openai": OpenAIResponsesServer,
    "openai-chat": OpenAIChatServer,
}
NAMES = tuple(SERVERS)
AnyPart: TypeAlias = StreamPart | UsageSoFar
ACCEPTED = UsageSoFar(usage=Usage())


@asynccontextmanager
async def serving(
    name: str, replies: Script, *, repeat_call_ids: bool = False
) -> AsyncIterator[tuple[LoopbackServer, Provider]]:
    """Run the server that ``name`` speaks to, and the provider on it."""
    async with SERVERS[name](replies, repeat_call_ids=repeat_call_ids) as server:
        provider = make_provider(name, ProviderSettings(base_url=server.base_url, api_key="key-of-the-test"))
        try:
            yield server, provider
        finally:
            await provider.close()


def request(*texts: str, effort: str | None = None, tools: tuple[ToolSpec, ...] = (), **more: Json) -> ModelRequest:
    """Return a request whose user says ``texts``."""
    messages = tuple(PromptMessage(role="user", parts=(PromptText(text=text),)) for text in texts)
    return ModelRequest(model=MODEL, system=(), messages=messages, effort=effort, tools=tools, options=more)


async def collect(provider: Provider, asked: ModelRequest) -> list[AnyPart]:
    """Return all parts of one call, but for the word that the service accepted it."""
    return [part async for part in provider.stream(asked) if part != ACCEPTED]


class Conversation:
    """A chat that grows like the engine lets it grow: history in a state, each request built from it."""

    def __init__(self, provider: Provider, *, model: str = MODEL, effort: str | None = None) -> None:
        self.provider = provider
        self.model = model
        self.effort = effort
        self.native: tuple[ProviderTool, ...] = ()
        self.items: list[TranscriptMessage] = []

    @property
    def state(self) -> ChatState:
        """The chat as it stands."""
        transcript = empty_transcript()
        messages = Messages(list(self.items))
        state = initial_state()
        return ChatState(
            control=state.control,
            transcript=type(transcript)(messages=messages, queued={}, results={}, arguments={}, policies={}),
        )

    def add(self, message: Message) -> MessageId:
        """Put a message into history."""
        version = len(self.items) + 1
        identity = MessageId(f"{version}.0")
        self.items.append(TranscriptMessage(identity, message, version))
        return identity

    def say(self, text: str) -> None:
        """Let the user say something."""
        self.add(Message(role="user", parts=(TextPart(text=Content(text)),)))

    def request(self) -> ModelRequest:
        """Return the next request."""
        built = build_prompt(self.state)
        return ModelRequest(
            model=self.model,
            system=built.system,
            messages=built.messages,
            tools=(WEATHER,),
            effort=self.effort,
            native=self.native,
        )

    async def answer(self, *, stop_after: int | None = None) -> tuple[Part, ...]:
        """Let the model answer, all of it or the first parts only, and keep what came."""
        assembler = Assembler(TOOLS)
        count = 0
        async with aclosing(self.provider.stream(self.request())) as stream:
            async for part in stream:
                assembler.add(part, count)
                count += 1
                if count == stop_after:
                    break
        interrupted = assembler.finish is None
        identity = MessageId(f"{len(self.items) + 1}.0")
        parts = assembler.parts(identity, interrupted=interrupted)
        step: Step = assembler.step(self.provider.name, self.model)
        self.add(Message(role="assistant", parts=parts, step=step, interrupted=interrupted))
        return parts

    def run_tools(self, output: str = "sunny") -> None:
        """Answer all calls of the last message."""
        last = self.items[-1]
        results = tuple(
            ToolResultPart(call=call_key(last.id, index), output=Content(output))
            for index, part in enumerate(last.message.parts)
            if isinstance(part, ToolCallPart)
        )
        self.add(Message(role="tool", parts=results))
