"""What the tests of races share: engines as processes, waiting for facts, and what must hold of every log."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from chatfold.engine import Engine
from chatfold.settings import Settings
from chatstate.audit import audit
from events.control import encode_control
from events.digest import verify_chain
from events.envelope import Recorded
from events.ids import ChatId
from events.messages import Message
from events.parts import TextPart, ToolCallPart, ToolResultPart
from events.records import Decision
from events.reducer import fold
from events.replay import replay
from events.state import ChatState
from generation.agents import Agent, Limits
from generation.decide import decide_generation_action
from generation.providers.script import Script, Turn, UseTool, Wait, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool
from store.clock import wall_clock
from store.contract import Store
from store.loading import read_recorded
from tests.races.gates import PATIENCE

CHAT = "chat"


class ManualClock:
    """The database's clock, which a test can put forward: leases and deadlines of minutes pass at once."""

    def __init__(self) -> None:
        self._ahead = 0

    def __call__(self) -> int:
        return wall_clock() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += round(seconds * 1_000_000)


class Stop:
    """A place where a script or a tool stops until it is let go."""

    def __init__(self) -> None:
        self._reached = asyncio.Event()
        self._go = asyncio.Event()
        self.times = 0

    def at(self) -> Wait:
        """The step of a script."""
        return Wait(until=self._go, reached=self._reach)

    async def here(self) -> None:
        """Stop a tool."""
        self._reach()
        await self._go.wait()

    def _reach(self) -> None:
        self.times += 1
        self._reached.set()

    async def arrived(self) -> None:
        await asyncio.wait_for(self._reached.wait(), PATIENCE)

    def go(self) -> None:
        self._go.set()


def engine_on(
    store: Store,
    script: Script | ScriptedProvider,
    *,
    tools: Sequence[Tool] = (),
    limits: Limits | None = None,
    worker: bool = True,
    **settings: Any,
) -> Engine:
    """An engine as a process of its own. Hints alone drive it, unless a poll or a lease is given."""
    provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
    agent = Agent(name="helper", model="scripted/m", tools=tools, limits=limits or Limits())
    given = {"poll": 60.0, "lease": 600.0, "grace": 0.2, "model_retry_unit": 1e-6, **settings}
    return Engine(store, [agent], worker=worker, providers={"scripted": provider}, settings=Settings(**given))


def calls(*names: str) -> Turn:
    """An answer that calls tools."""
    return turn(*(UseTool(name) for name in names))


async def until(fact: Callable[[], bool]) -> None:
    """Let the loop run until something in this process holds."""
    async with asyncio.timeout(PATIENCE):
        while not fact():  # noqa: ASYNC110 - whatever the fact is, it has no event of its own
            await asyncio.sleep(0.001)


async def settled(engine: Engine, chat: str = CHAT) -> ChatState:
    return await asyncio.wait_for(engine.settled(chat), PATIENCE)


async def reached(engine: Engine, fact: Callable[[ChatState], bool], chat: str = CHAT) -> ChatState:
    """Wait until the committed state of a chat is as wanted."""
    async with asyncio.timeout(PATIENCE), engine.store.hints() as hints:
        while True:
            state = await engine.state(chat)
            if fact(state):
                return state
            await anext(hints)


def texts(state: ChatState) -> list[str]:
    """Role and text of each message, a call by its tool, a result by its output or reason."""
    return [_shown(item.message) for item in state.need_transcript("a test").messages]


def _shown(message: Message) -> str:
    shown = []
    for part in message.parts:
        match part:
            case TextPart():
                shown.append(part.text.text)
            case ToolCallPart():
                shown.append(f"call {part.name}")
            case ToolResultPart():
                shown.append(f"result {part.reason or (part.output and part.output.value)}")
            case _:
                shown.append(type(part).__name__)
    return f"{message.role}: {' + '.join(shown)}" + (" (interrupted)" if message.interrupted else "")


async def log_of(store: Store, chat: str = CHAT) -> list[Recorded]:
    return await read_recorded(store, ChatId(chat))


async def types_of(store: Store, chat: str = CHAT) -> list[str]:
    return [recorded.event.type for recorded in await log_of(store, chat)]


async def sound(store: Store, chat: str = CHAT) -> list[Recorded]:
    """Check all that must hold of a log whatever happened, and return it.

    The audit finds nothing, digests chain, the header is the fold, no command stands twice in the log, no call has two
    results, and each decision is the one that the rules give on the state just before its own event.
    """
    stored = await store.read_events(ChatId(chat))
    verify_chain(stored)
    log = await log_of(store, chat)
    assert list(audit(log)) == []
    state = fold(log)
    header = await store.load_header(ChatId(chat))
    assert header is not None
    assert header.header.control == encode_control(state.control), (
        header.header.control,
        encode_control(state.control),
    )
    starts = Counter(r.envelope.command for r in log if r.envelope.index == 0)
    assert set(starts.values()) == {1}
    _check_results(state)
    for step in replay(log):
        decision = getattr(step.recorded.event, "decision", None)
        if decision is not None:
            assert decision == _taken_at(step.before), f"version {step.recorded.version}"
    return log


def _taken_at(state: ChatState) -> Decision:
    policy = state.need_transcript("a test").policies[state.control.policy]
    return decide_generation_action(state, policy).record


def _check_results(state: ChatState) -> None:
    results = Counter(
        part.call
        for item in state.need_transcript("a test").messages
        for part in item.message.parts
        if isinstance(part, ToolResultPart)
    )
    assert set(results.values()) <= {1}
