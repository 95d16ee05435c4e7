"""Who lost an append has its turn before newcomers; users make room for other processes, workers do not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from chatfold.testing.stores import WrappedStore
from chatstate import commands as c
from events.content import Content
from events.ids import ChatId, CommandId
from events.records import Actor
from store.append import CommandIdentity, Journal, PlanRun
from store.contract import Append, AppendResult, Store
from store.loading import read_recorded
from store.memory import MemoryStore
from store.turns import Turns
from tests.chatstate import build as b

CHAT = ChatId("chat")


async def some_turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def no_wait(seconds: float) -> None:
    raise AssertionError(f"nobody is to wait, {seconds} s were asked for")


async def test_nobody_waits_while_nobody_loses() -> None:
    turns = Turns(no_wait)
    with turns.of(CHAT, patient=True) as first, turns.of(CHAT, patient=True) as second:
        assert not await first.begin()
        assert not await second.begin()
    assert not turns._lines


async def test_newcomers_wait_behind_who_lost() -> None:
    turns = Turns(no_wait)
    with turns.of(CHAT, patient=False) as newcomer, turns.of(ChatId("other"), patient=False) as elsewhere:
        with turns.of(CHAT, patient=False) as loser:
            assert not await loser.begin()
            await loser.lost()
            coming = asyncio.create_task(newcomer.begin())
            assert not await elsewhere.begin()
            await some_turns()
            assert not coming.done()
            await loser.lost()
            assert not coming.done()
        assert await coming
    assert not turns._lines


async def test_a_newcomer_that_is_cancelled_leaves_the_line() -> None:
    turns = Turns(no_wait)
    with turns.of(CHAT, patient=False) as loser, turns.of(CHAT, patient=False) as newcomer:
        await loser.lost()
        coming = asyncio.create_task(newcomer.begin())
        await some_turns()
        coming.cancel()
        await asyncio.wait({coming})
        loser.end()
        with turns.of(CHAT, patient=False) as third:
            assert not await third.begin()


async def test_a_user_makes_room_for_other_processes_for_longer_each_time() -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    with Turns(wait).of(CHAT, patient=True) as turn:
        for _ in range(12):
            await turn.lost()
    assert len(waits) == 11, "the first time it only stands in line"
    assert waits == sorted(waits)
    assert waits[0] < 0.1
    assert waits[-1] == 1.0


class Crowd(WrappedStore):
    """Lets something happen before each append of a worker."""

    def __init__(self, inner: Store, meet: Callable[[int], Awaitable[None]]) -> None:
        super().__init__(inner)
        self.meet, self.tries = meet, 0

    async def append(self, append: Append) -> AppendResult:
        if append.events[0].stored.envelope.actor.kind == "worker":
            self.tries += 1
            await self.meet(self.tries)
        return await super().append(append)


async def test_commands_do_not_starve_a_worker() -> None:
    async with MemoryStore() as memory:
        newcomers: list[asyncio.Task[object]] = []

        async def meet(tries: int) -> None:
            if tries == 1:
                await do(rival, "rival")
            newcomers.extend(asyncio.create_task(do(journal, f"user {tries} {number}")) for number in range(3))
            await some_turns()

        crowd = Crowd(memory, meet)
        journal, rival = (Journal(store, lambda: bytes(16)) for store in (crowd, memory))
        await rival.execute(CHAT, lambda run: void(run.do(b.create())), identity("create"))
        await do(journal, "worker", kind="worker")
        await asyncio.gather(*newcomers)
        log = await read_recorded(memory, CHAT)
    assert crowd.tries == 2
    commands = [recorded.envelope.command for recorded in log]
    assert len(commands) == 9
    assert not [command for command in commands[: commands.index(CommandId("worker"))] if command.startswith("user 2")]


def void(_: object) -> None:
    """A plan gives nothing."""


def identity(command: str, kind: str = "user") -> CommandIdentity:
    actor = Actor(kind="worker", id="w1") if kind == "worker" else Actor(kind="user", id="ann")
    return CommandIdentity(command=CommandId(command), actor=actor)


async def do(journal: Journal, command: str, kind: str = "user") -> None:
    def plan(run: PlanRun) -> None:
        run.do(c.SetTitle(title=Content(command)))

    await journal.execute(CHAT, plan, identity(command, kind))
