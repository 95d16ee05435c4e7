"""What the conversations share: a scene of engine, model service and watchers, and waiting on conditions.

What must hold after a conversation is in ``tests.e2e.checks``; tools that stop where a test wants it in
``tests.e2e.tools``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from chatfold.engine import Engine
from chatfold.inputs import MessageInput
from chatfold.settings import Settings
from chatfold.stream import EventItem, StreamItem
from chatfold.testing.servers import (
    AnthropicServer,
    LoopbackServer,
    OpenAIChatServer,
    OpenAIResponsesServer,
    Reply,
    Script,
)
from events.control import Control, decode_control
from events.ids import ChatId
from events.messages import Message
from events.parts import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from events.state import ChatState
from generation.agents import Agent, Limits
from generation.hooks.dispatch import Hook
from generation.models import ModelConfig
from generation.providers.registry import ProviderSettings, make_provider
from generation.tools.contract import Tool
from store import Store, open_store
from store.append import CommandIdentity, Journal, Outcome, Plan
from store.loading import LoadedChat

SERVERS: dict[str, type[LoopbackServer]] = {
    "anthropic": AnthropicServer,
    "openai": OpenAIResponsesServer,
    "openai-chat": OpenAIChatServer,
}
MODEL = "model-one"
PATIENCE = 60.0
"""Seconds after which a condition that did not come true fails the test."""

SETTINGS = Settings(poll=0.05, grace=5.0, model_retry_unit=0.05)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a conversation takes place."""

    provider: str
    url: str
    agent: str

    def model(self, **options: Any) -> ModelConfig:
        """Return the model of this place."""
        return ModelConfig(provider=self.provider, name=MODEL, **options)


class KeepingJournal(Journal):
    """Keeps the newest state of each chat as appends made it, to compare with what the log folds to."""

    kept: dict[ChatId, ChatState]

    async def execute(
        self,
        chat: ChatId,
        plan: Plan,
        identity: CommandIdentity,
        *,
        transcript: bool = False,
        base: LoadedChat | None = None,
        now: Callable[[], int] | None = None,
        estimate: Callable[[], int] | None = None,
    ) -> Outcome:
        """See ``Journal.execute``."""
        outcome = await super().execute(
            chat, plan, identity, transcript=transcript, base=base, now=now, estimate=estimate
        )
        state = outcome.chat.state
        known = self.kept.get(chat)
        if state.transcript is not None and (known is None or known.control.version <= state.control.version):
            self.kept[chat] = state
        return outcome


class Watcher:
    """Reads the stream of one chat from the start."""

    def __init__(self, engine: Engine, chat: str) -> None:
        self.chat = chat
        self.items: list[StreamItem] = []
        self._news = asyncio.Condition()
        self._task = asyncio.create_task(self._read(engine))

    async def _read(self, engine: Engine) -> None:
        async for item in engine.stream(self.chat):
            async with self._news:
                self.items.append(item)
                self._news.notify_all()

    async def until(self, condition: Callable[[list[StreamItem]], bool]) -> None:
        """Wait until the items seen meet a condition."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: condition(self.items) or self._task.done())
        if self._task.done():
            self._task.result()

    async def until_version(self, version: int) -> None:
        """Wait until the event of a version was seen."""
        await self.until(lambda items: any(isinstance(i, EventItem) and i.recorded.version >= version for i in items))

    async def stop(self) -> None:
        """Stop to read."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


@dataclass(kw_only=True)
class Scene:
    """An engine that talks to model services on loopback."""

    place: Place
    engine: Engine
    server: LoopbackServer
    others: tuple[LoopbackServer, ...] = ()
    watchers: dict[str, Watcher] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """The engine's store."""
        return self.engine.store

    async def start(self, message: MessageInput | None = "Hello", **options: Any) -> str:
        """Create a chat, watch it, and return its id."""
        receipt = await self.engine.create_chat(self.place.agent, message, **options)
        self.watch(receipt.chat)
        return receipt.chat

    def watch(self, chat: str) -> Watcher:
        """Watch a chat's stream from its start."""
        watcher = self.watchers[chat] = Watcher(self.engine, chat)
        return watcher

    async def control(self, chat: str) -> Control:
        """Return the chat's control as its header has it."""
        loaded = await self.store.load_header(ChatId(chat))
        assert loaded is not None
        return decode_control(loaded.header.control)

    async def until(self, chat: str, condition: Callable[[Control], bool]) -> Control:
        """Wait until the chat meets a condition."""
        async with asyncio.timeout(PATIENCE), self.store.hints() as hints:
            while True:
                control = await self.control(chat)
                if condition(control):
                    return control
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(SETTINGS.poll):
                        await anext(hints)

    async def settled(self, chat: str, status: str = "waiting") -> ChatState:
        """Wait until no worker owes the chat anything, see that it ended in ``status``, and return its state."""
        async with asyncio.timeout(PATIENCE):
            state = await self.engine.settled(chat)
        assert state.control.status == status, state.control.last_error
        return state


@asynccontextmanager
async def stage(
    place: Place,
    script: Script,
    *,
    tools: Sequence[Tool] = (),
    limits: Limits | None = None,
    repeat_call_ids: bool = False,
    worker: bool = True,
    settings: Settings = SETTINGS,
    store: Store | None = None,
    model: ModelConfig | None = None,
    others: dict[str, Sequence[Reply]] | None = None,
    hooks: Sequence[Hook] = (),
    **agent: Any,
) -> AsyncIterator[Scene]:
    """Set a scene; watchers, engine, providers and servers are gone at its end.

    Args:
        place: Provider and store.
        script: What the model service answers.
        tools: The agent's tools.
        limits: The agent's limits.
        repeat_call_ids: Whether the service names calls alike in every turn.
        worker: Whether the engine runs chats.
        settings: The engine's settings.
        store: A store in place of the one that the place's URL names.
        model: The agent's model, where it needs more than a name.
        others: Scripts of further services, by the name of their provider.
        hooks: The engine's hooks.
        agent: Further fields of the agent.
    """
    declared = Agent(name=place.agent, model=model or place.model(), tools=tools, limits=limits or Limits(), **agent)
    async with contextlib.AsyncExitStack() as stack:
        servers: dict[str, LoopbackServer] = {}
        providers = {}
        for name, lines in {place.provider: script, **(others or {})}.items():
            server = SERVERS[name](lines, repeat_call_ids=repeat_call_ids)
            servers[name] = await stack.enter_async_context(server)
            provider = make_provider(name, ProviderSettings(base_url=server.base_url, api_key="key-of-the-test"))
            providers[name] = provider
            stack.push_async_callback(provider.close)
        engine = Engine(
            store or open_store(place.url),
            [declared],
            worker=worker,
            providers=providers,
            settings=settings,
            hooks=hooks,
        )
        journal = KeepingJournal(engine.store, engine.runtime.journal._salt)
        journal.kept = {}
        engine.runtime.journal = journal
        scene = Scene(
            place=place,
            engine=await stack.enter_async_context(engine),
            server=servers.pop(place.provider),
            others=tuple(servers.values()),
        )
        try:
            yield scene
        finally:
            for watcher in scene.watchers.values():
                await watcher.stop()


def texts(state: ChatState, role: str = "assistant") -> list[str]:
    """Return the texts of the messages of a role that users see, one per message with text."""
    found = []
    for item in state.need_transcript("texts").messages:
        if item.message.role == role and item.message.visibility != "model":
            text = text_of(item.message)
            if text:
                found.append(text)
    return found


def text_of(message: Message) -> str:
    """Return the text of a message."""
    return "".join(part.text.text for part in message.parts if isinstance(part, TextPart))


def reasoning(state: ChatState) -> list[ReasoningPart]:
    """Return the reasoning parts of a chat."""
    messages = state.need_transcript("reasoning").messages
    return [part for item in messages for part in item.message.parts if isinstance(part, ReasoningPart)]


def calls(state: ChatState) -> list[ToolCallPart]:
    """Return the calls of tools of the application, in order."""
    messages = state.need_transcript("calls").messages
    parts = [part for item in messages for part in item.message.parts if isinstance(part, ToolCallPart)]
    return [part for part in parts if part.runner != "provider"]


def results(state: ChatState) -> list[ToolResultPart]:
    """Return the results in the order of history."""
    messages = [item.message for item in state.need_transcript("results").messages if item.message.boundary is None]
    return [part for message in messages for part in message.parts if isinstance(part, ToolResultPart)]


def outputs(state: ChatState) -> list[Any]:
    """Return what the results say: an output, or the reason why there is none."""
    return [part.output.value if part.output is not None else part.reason for part in results(state)]


def event_types(scene_items: Sequence[StreamItem]) -> list[str]:
    """Return the types of the events that a watcher saw."""
    return [item.recorded.event.type for item in scene_items if isinstance(item, EventItem)]
