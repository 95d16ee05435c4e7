"""The engine as a contender: real engine and worker, a model that answers at once, a tool that returns at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from chatfold.engine import Engine
from chatfold.settings import Settings
from events.messages import Usage
from generation.agents import Agent
from generation.prompt_types import ModelRequest
from generation.providers.contract import CallDelta, CallEnd, Finish, StreamPart, TextDelta, TextEnd, UsageSoFar
from generation.tools.contract import Tool, tool
from tests.benchmarks.work import Texts

SETTINGS: Final = Settings(capacity=2000, lease=60.0)
_USAGE: Final = Usage(input=1000, output=250)


class InstantModel:
    """Calls the tool after a user's message, answers after a result, with about 1 kB each, in one piece."""

    name = "instant"

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    async def close(self) -> None:
        """Close nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Answer."""
        if request.messages[-1].role == "user":
            arguments = f'{{"query": "{self._texts()}"}}'
            yield CallDelta(block=0, id="call", name="lookup", text=arguments)
            yield CallEnd(block=0, id="call", name="lookup", arguments=arguments)
            yield Finish(reason="tool_calls", usage=_USAGE)
        else:
            yield TextDelta(block=0, text=self._texts())
            yield TextEnd(block=0)
            yield Finish(reason="stop", usage=_USAGE)


def lookup_tool(texts: Texts) -> Tool:
    """Return a tool that returns at once."""

    async def lookup(query: str) -> str:
        """Look something up."""
        del query
        return texts()

    return tool(lookup)


class Ours:
    """The whole engine with its worker in this process."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self._texts = Texts()
        agent = Agent(name="bench", model="instant/one", system="Be brief.", tools=[lookup_tool(self._texts)])
        providers = {"instant": InstantModel(self._texts)}
        self.engine = Engine(url, agents=[agent], providers=providers, settings=SETTINGS)

    async def open(self) -> None:
        await self.engine.__aenter__()

    async def close(self) -> None:
        await self.engine.__aexit__(None, None, None)

    async def new_chat(self) -> str:
        return (await self.engine.create_chat("bench")).chat

    async def turn(self, chat: str) -> None:
        await self.engine.send_message(chat, self._texts())
        state = await self.engine.settled(chat)
        assert state.control.status == "waiting", state.control.last_error
