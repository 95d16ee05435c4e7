"""A long conversation at a service that signs thinking with all that stood before it, through whatever changes it."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

from chatfold.engine import Engine
from chatfold.testing.servers import Answer, Gate, Reasoning, Reply, Text, ToolCall
from chatfold.testing.servers.anthropic_server import AnthropicServer
from chatfold.testing.servers.recording import RecordedRequest
from chatfold.testing.servers.script import Part
from events.state import ChatState
from generation.agents import Agent
from generation.models import ModelConfig
from generation.providers.anthropic_prefix import Prefix
from generation.providers.registry import ProviderSettings, make_provider
from store import open_store
from tests.e2e.kit import SETTINGS
from tests.e2e.tools import add

ACTS = 40
SEEDS = 4


class Service:
    """What the service answers: numbered thoughts, texts and calls; and a gate where the test wants to come between."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._said = 0
        self.gate: Gate | None = None

    def answer(self, request: RecordedRequest) -> Reply:
        """Answer one request."""
        self._said += 1
        number, draw = self._said, self._random.random
        thoughts: list[Part] = []
        if draw() < 0.9:
            thoughts.append(Reasoning(redacted=True) if draw() < 0.2 else Reasoning(f"Thought {number}."))
        gate, self.gate = self.gate, None
        if gate is not None:
            return Answer([*thoughts, Text("A long and winding answer.")], gate=gate, gate_after=3)
        if request.body.get("tool_choice") == {"type": "none"} or draw() < 0.6:
            return Answer([*thoughts, Text(f"Answer {number}.")])
        calls = [ToolCall("add", {"a": number, "b": place}) for place in range(self._random.choice((1, 2)))]
        return Answer([*thoughts, Text("Adding."), *calls])


class Talk:
    """A chat and its forks, in one engine after the other."""

    def __init__(self, url: str, server: AnthropicServer, service: Service, random: Random) -> None:
        self.done = Counter[str]()
        self.chats: list[str] = []
        self._url = url
        self._server = server
        self._service = service
        self._random = random
        model = ModelConfig(provider="anthropic", name="claude-haiku-4-9", effort="low", max_effort="high")
        self._agent = Agent(name=f"agent-{uuid.uuid4().hex}", model=model, tools=[add], system="Be brief.")

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        """Run a new engine over the same store."""
        provider = make_provider("anthropic", ProviderSettings(base_url=self._server.base_url, api_key="k"))
        try:
            providers = {"anthropic": provider}
            store = open_store(self._url)
            async with Engine(store, [self._agent], worker=True, providers=providers, settings=SETTINGS) as engine:
                yield engine
        finally:
            await provider.close()

    async def go_on(self, acts: int) -> None:
        """Do something to the chats so often; the engine ends now and then, also in the middle of an answer."""
        while acts:
            gate: Gate | None = None
            async with self.engine() as engine:
                if not self.chats:
                    self.chats.append((await engine.create_chat(self._agent.name, "Begin.")).chat)
                for chat in self.chats:
                    await engine.settled(chat)
                for _ in range(min(acts, self._random.randint(2, 6))):
                    acts -= 1
                    await self._act(engine)
                if acts and self._random.random() < 0.5:
                    gate = await self._hold(engine, self._random.choice(self.chats))
                    self.done["restart in an answer"] += 1
            self.done["restart"] += 1
            if gate is not None:
                gate.release()

    async def _act(self, engine: Engine) -> None:
        chat = self._random.choice(self.chats)
        state = await engine.settled(chat)
        acts: tuple[tuple[Callable[[Engine, str, ChatState], Awaitable[None]], float], ...] = (
            (self._send, 5), (self._interrupt, 3), (self._edit, 2), (self._compact, 1), (self._there_and_back, 1.5),
            (self._fork, 1), (self._erase, 0.5),
        )  # fmt: skip
        act = self._random.choices([act for act, _ in acts], [weight for _, weight in acts])[0]
        await act(engine, chat, state)
        for each in self.chats:
            ended = await engine.settled(each)
            error = ended.control.last_error
            assert ended.control.status == "waiting", f"{act.__name__}: {error and error.message.text}"
        self.done[act.__name__] += 1

    async def _send(self, engine: Engine, chat: str, state: ChatState) -> None:
        await engine.send_message(chat, f"Say {self.done.total()}.")

    async def _hold(self, engine: Engine, chat: str) -> Gate:
        """Send a message, and stop in the middle of its answer."""
        gate = self._service.gate = Gate()
        await engine.send_message(chat, f"Go {self.done.total()}.")
        await gate.reached()
        return gate

    async def _interrupt(self, engine: Engine, chat: str, state: ChatState) -> None:
        gate = await self._hold(engine, chat)
        if self._random.random() < 0.5:
            await engine.interrupt(chat)
        else:
            await engine.send_message(chat, "No, this.", busy="interrupt")
        await engine.settled(chat)
        gate.release()
        if self._random.random() < 0.5:
            await engine.send_message(chat, "Go on.")

    async def _edit(self, engine: Engine, chat: str, state: ChatState) -> None:
        users = [item for item in state.messages if item.message.role == "user" and item.message.visibility == "both"]
        await engine.edit_message(chat, self._random.choice(users[-3:]).id, f"Rather {self.done.total()}.")

    async def _compact(self, engine: Engine, chat: str, state: ChatState) -> None:
        await self._send(engine, chat, state)  # something that a compaction can be of
        await engine.settled(chat)
        await engine.compact(chat)
        await engine.settled(chat)

    async def _there_and_back(self, engine: Engine, chat: str, state: ChatState) -> None:
        await self._compact(engine, chat, state)
        await self._send(engine, chat, state)
        await engine.settled(chat)
        await engine.uncompact(chat)
        await self._send(engine, chat, state)

    async def _fork(self, engine: Engine, chat: str, state: ChatState) -> None:
        fork = (await engine.fork(chat)).chat
        self.chats.append(fork)
        await self._send(engine, fork, state)

    async def _erase(self, engine: Engine, chat: str, state: ChatState) -> None:
        await engine.erase(chat, [self._random.choice(list(state.messages)).id])
        await self._send(engine, chat, state)


async def test_every_request_of_long_conversations_is_accepted(url: str) -> None:
    done = Counter[str]()
    for seed in range(SEEDS):
        random = Random(seed)
        service = Service(random)
        async with AnthropicServer(service.answer) as server:
            server.issued.covers = "request"
            talk = Talk(url, server, service, random)
            await talk.go_on(ACTS)
            assert [(one.status, one.message) for one in server.refused] == [], f"seed {seed}"
            # Not for want of anything that could be refused.
            assert max(len(request.seen.reasoning) for request in server.requests) >= 5
            print(f"seed {seed}: {len(server.requests)} requests, {dict(talk.done)}")
        done += talk.done
    wanted = ("_send", "_interrupt", "_edit", "_compact", "_there_and_back", "_fork", "_erase", "restart in an answer")
    assert all(done[name] for name in wanted), done


async def test_a_service_refuses_what_was_signed_behind_something_else(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the rule of prefixes such a conversation fails: the other test says something."""
    monkeypatch.setattr(Prefix, "take", lambda self, message: message)
    random = Random(0)
    service = Service(random)
    async with AnthropicServer(service.answer) as server:
        server.issued.covers = "request"
        with pytest.raises(AssertionError, match="Anthropic"):
            await Talk(url, server, service, random).go_on(ACTS)
        assert {one.message.partition(": ")[2] for one in server.refused} == {"Invalid `signature` in `thinking` block"}
