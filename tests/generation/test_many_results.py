"""A step with very many calls: results that come together are recorded together."""

from __future__ import annotations

import asyncio

from chatfold import Agent, Engine, tool
from chatfold.testing import ScriptedProvider, UseTool, turn
from chatfold.testing.stores import CountingStore
from events.vocabulary import ToolResultRecorded
from store.memory import MemoryStore

CALLS = 500


async def test_results_that_come_together_are_one_append() -> None:
    store = CountingStore(MemoryStore())
    door, waiting = asyncio.Event(), asyncio.Semaphore(0)

    @tool
    async def wait(number: int) -> str:
        """Wait."""
        waiting.release()
        await door.wait()
        return f"done {number}"

    calls = turn(*(UseTool("wait", {"number": number}) for number in range(CALLS)))
    model = ScriptedProvider([calls, "All done."])
    async with Engine(
        store, [Agent(name="a", model="scripted", tools=[wait])], providers={"scripted": model}
    ) as engine:
        receipt = await engine.create_chat("a", "Go.")
        for _ in range(CALLS):
            await waiting.acquire()
        before = store.count("append")
        door.set()
        state = await engine.settled(receipt.chat)
        recorded = [each for each in await engine.events(receipt.chat) if isinstance(each.event, ToolResultRecorded)]
    assert state.control.status == "waiting"
    assert len(recorded) == CALLS
    assert len({each.envelope.command for each in recorded}) <= 5
    assert store.count("append") - before <= 6
