"""What an attempt cost is never lost: an edit that cuts it leaves its usage to the next start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from chatfold import Agent, Engine, Settings
from events.messages import Usage
from events.vocabulary import AttemptStarted
from generation.prompt_types import ModelRequest
from generation.providers.contract import Finish, StreamPart, TextDelta, UsageSoFar
from generation.providers.scripted import ScriptedProvider


class Counting(ScriptedProvider):
    """Reports its input at once, then waits for ever in its first call."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamPart | UsageSoFar, None]:
        """Play two calls."""
        del request
        yield UsageSoFar(usage=Usage(input=100))
        if not self.begun.is_set():
            yield TextDelta(block=0, text="Cut")
            self.begun.set()
            await asyncio.Event().wait()
        yield TextDelta(block=0, text="Whole")
        yield Finish(reason="stop", usage=Usage(input=7, output=3))


async def test_an_edit_leaves_the_usage_of_what_it_cut_to_the_next_start() -> None:
    provider = Counting()
    agent = Agent(name="helper", model="scripted/any")
    async with Engine("memory://", [agent], providers={"scripted": provider}, settings=Settings(poll=0.05)) as engine:
        created = await engine.create_chat("helper", "Hello")
        await provider.begun.wait()
        await engine.edit_message(created.chat, created.messages[0], "Hello again")
        state = await engine.settled(created.chat)
        log = await engine.events(created.chat)
    starts = [each.event for each in log if isinstance(each.event, AttemptStarted)]
    assert [start.cut is not None for start in starts] == [False, True]
    cut = starts[1].cut
    assert cut is not None
    assert cut.step is not None
    assert cut.request is not None
    assert cut.step.usage == Usage(input=100)
    assert state.control.usage == Usage(input=107, output=3)
