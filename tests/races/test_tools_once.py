"""A worker is lost at every append of a turn with tools: what was recorded is not run again, nor what must run once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from events.envelope import Recorded
from events.ids import ChatId
from events.parts import ToolResultPart
from events.reasons import Reason
from events.state import ChatState
from events.vocabulary import Acquired, AttemptStarted, ToolResultRecorded
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool, ToolContext, tool
from generation.tools.reconcile import NOT_HAPPENED, NOT_KNOWN, Happened
from store.contract import Append, Store
from tests.races.gates import GatedStore, When, by_worker
from tests.races.kit import CHAT, Stop, calls, engine_on, settled, sound, texts, until
from tests.races.test_workers import id_of


class World:
    """What tools do to it, and a bank that knows what it did."""

    def __init__(self) -> None:
        self.ran = Counter[str]()
        self.booked: dict[str, int] = {}
        self.epochs: list[int] = []
        self.asked = 0

    def tools(self) -> list[Tool]:
        @tool(crash="rerun")
        async def look() -> str:
            """Look."""
            self.ran["look"] += 1
            return "seen"

        @tool(crash="report")
        async def post() -> str:
            """Post."""
            self.ran["post"] += 1
            return "posted"

        @tool(reconcile=self.ask)
        async def book(context: ToolContext) -> str:
            """Book."""
            self.ran["book"] += 1
            self.booked[context.idempotency_key] = context.epoch
            return "booked"

        return [look, post, book]

    def ask(self, context: ToolContext, _arguments: dict[str, Any]) -> object:
        self.asked += 1
        self.epochs.append(context.epoch)
        return Happened("booked before") if context.idempotency_key in self.booked else NOT_HAPPENED


def at_append(number: int) -> When:
    """Tell a worker's append by its number, from 1 on."""
    seen = list[Append]()

    def wants(append: Append) -> bool:
        if by_worker(append):
            seen.append(append)
        return len(seen) == number

    return wants


def script() -> ScriptedProvider:
    return ScriptedProvider(lambda request: "Done." if len(request.messages) > 1 else calls("look", "post", "book"))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 7))
async def test_a_worker_that_is_lost_at_an_append(base: Store, number: int, after: bool) -> None:
    world = World()
    gated = GatedStore(base)
    gated.deaf = True
    held = gated.hold("append", at_append(number), after=after)
    async with (
        engine_on(GatedStore(base), [], worker=False) as other,
        engine_on(gated, script(), tools=world.tools(), poll=0.05) as first,
    ):
        arriving = asyncio.create_task(held.arrived())
        await other.create_chat("helper", "Go", chat_id=CHAT)
        ending = asyncio.create_task(settled(other))
        await asyncio.wait({arriving, ending}, return_when=asyncio.FIRST_COMPLETED)
        await base.forget_worker(id_of(first))
        ended = first.runtime.lease_until
        first.runtime.boot = lambda: ended  # for the worker too that time has passed, whether it could beat or not
        async with engine_on(GatedStore(base), script(), tools=world.tools(), poll=0.05):
            state = await ending
            held.open()
            await until(lambda: first.worker is not None and not first.worker.running)
        arriving.cancel()
    header = await base.load_header(ChatId(CHAT))
    assert header is not None
    assert header.header.version == state.control.version, "the first worker's late append came to nothing"
    log = await sound(base)
    assert texts(state)[-1] == "assistant: Done."
    check_once(world, log)


def check_once(world: World, log: Sequence[Recorded]) -> None:
    """Check that nothing ran more often than it may."""
    assert world.ran["post"] <= 1
    assert (world.ran["book"], len(world.booked)) == (1, 1)
    started, recorded = Counter[str](), Counter[str]()
    for event in (one.event for one in log):
        if isinstance(event, AttemptStarted):
            assert not set(event.calls) & set(recorded), "what is recorded is not started again"
            started.update(event.calls)
        elif isinstance(event, ToolResultRecorded):
            recorded[event.result.call] += 1
    assert set(recorded.values()) <= {1}
    assert world.ran["look"] <= max(started.values())


@pytest.mark.parametrize("how", ["lost", "shutdown"])
@pytest.mark.parametrize("says", ["happened", "not happened", "not known"])
async def test_a_new_holder_asks_before_it_runs_a_call(any_base: Store, how: str, says: str) -> None:
    stop, ran, asked = Stop(), list[int](), list[object]()

    def ask(context: ToolContext, arguments: dict[str, Any]) -> object:
        asked.append((context.idempotency_key, context.epoch, arguments))
        return {"happened": Happened("paid then"), "not happened": NOT_HAPPENED, "not known": NOT_KNOWN}[says]

    @tool(reconcile=ask)
    async def pay(cents: int = 5) -> str:
        """Pay."""
        ran.append(cents)
        if len(ran) == 1:
            await stop.here()
        return "paid now"

    gated = GatedStore(any_base)
    gated.deaf = True
    async with engine_on(GatedStore(any_base), [], worker=False) as other:
        async with engine_on(gated, [calls("pay")], tools=[pay], poll=0.05, grace=0.01) as first:
            await other.create_chat("helper", "Pay", chat_id=CHAT)
            await stop.arrived()
            if how == "lost":
                await any_base.forget_worker(id_of(first))
                await take_over(any_base, pay)
        if how == "shutdown":
            await take_over(any_base, pay)
        state = await settled(other)
        stop.go()
    results = {"happened": "paid then", "not happened": "paid now", "not known": Reason.WORKER_LOST}
    assert texts(state)[2:] == [f"tool: result {results[says]}", "assistant: Done."]
    assert len(ran) == (2 if says == "not happened" else 1)
    assert asked == [(f"{CHAT}/{call_of(state)}", 2, {})]
    log = await sound(any_base)
    assert [one.event.takeover for one in log if isinstance(one.event, Acquired)] == [False, how == "lost"]


async def take_over(store: Store, pay: Tool) -> None:
    async with engine_on(GatedStore(store), ["Done."], tools=[pay], poll=0.05) as second:
        await settled(second)


def call_of(state: ChatState) -> str:
    [part] = [
        part
        for item in state.need_transcript("a test").messages
        for part in item.message.parts
        if isinstance(part, ToolResultPart)
    ]
    return part.call
