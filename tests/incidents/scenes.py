"""What went wrong in the prepared chats: each is played with the real engine, as its application would have.

The scripts stand for models; tools, clients, limits and deaths of workers are real ones.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from chatfold import Agent, Engine, Limits, ModelConfig, Settings, Tool, client_tool, tool
from chatfold.testing import ClassifiedError, Fail, ScriptedProvider, Turn, UseTool, VirtualTime, turn
from events.messages import Usage

MODEL: Final = ModelConfig(provider="scripted", name="m", context_limit=8_000, max_output=500)
BUSY: Final = ClassifiedError(
    kind="rate_limit",
    message="Rate limit reached for requests.",
    provider="scripted",
    retryable=True,
    status_code=429,
    retry_after_us=20_000_000,
)


@tool
async def charge_card(amount: float) -> str:
    """Charge the customer's card."""
    await asyncio.sleep(600 * amount)
    return "charged"


@tool
def read_page(url: str) -> str:
    """Read a page of the manual."""
    return f"{url}: " + "All that is to be known of pumps. " * 40


@tool
def look_up(order: str) -> str:
    """Look an order up."""
    return f"{order}: sent on Monday"


@tool(name="look_up", stop_after=True)
def look_up_and_stop(order: str) -> str:
    """Look an order up."""
    return f"{order}: sent on Monday"


PICK_SEAT: Final = client_tool(
    "pick_seat",
    "Let the passenger pick a seat.",
    {"type": "object", "properties": {"row": {"type": "integer"}}},
    action_timeout=120,
    on_expiry="end_turn",
)


def agent(name: str, *tools: Tool, **options: object) -> Agent:
    """Return an agent with some tools."""
    return Agent(name=name, model=MODEL, system=f"You are {name} of a shop.", tools=list(tools), **options)  # type: ignore[arg-type]


def play(who: Agent, script: Iterable[Turn | str], said: str, *, wait: float = 0.0) -> bytes:
    """Let an agent answer a message in virtual time, wait for some seconds more, and return the log."""
    time = VirtualTime(3)

    async def run() -> bytes:
        async with time.engine([who], providers={"scripted": ScriptedProvider(list(script))}) as engine:
            chat = (await engine.create_chat(who.name, said)).chat
            await engine.settled(chat)
            await asyncio.sleep(wait)
            await engine.settled(chat)
            return await engine.export_log(chat, blobs=True)

    return time.run(run)


def compaction_loop() -> bytes:
    """The agent reads pages that fill its context, compacts, has forgotten what it read, and reads the same again."""
    reads = UseTool("read_page", {"url": "manual/pumps"})
    first = turn(reads, usage=Usage(input=900, output=40))
    full = turn(reads, usage=Usage(input=6_100, output=40))
    summary = turn("The user asks how the pump is maintained.", usage=Usage(input=6_100, output=60))
    answers: list[Turn | str] = [*[first, full, summary] * 3, first, full]
    who = agent("mechanic", read_page, limits=Limits(max_steps=8))
    return play(who, answers, "How is the pump maintained?")


def stop_after_good() -> bytes:
    """As it was before: the tool gives its result to the model, which answers."""
    return play(agent("support", look_up), _LOOKS_UP, "Where is order 17?")


def stop_after_wrong() -> bytes:
    """A change declared the tool with ``stop_after``: the turn ends with its result, and nobody answers the user."""
    return play(agent("support", look_up_and_stop), _LOOKS_UP, "Where is order 17?")


_LOOKS_UP: Final[list[Turn | str]] = [
    turn("Let me see.", UseTool("look_up", {"order": "17"})),
    "It was sent on Monday.",
]


def silent_client() -> bytes:
    """The client is asked to let the user pick a seat, and never answers."""
    return play(agent("booking", PICK_SEAT), [turn(UseTool("pick_seat", {"row": 12}))], "Row 12, please.", wait=300)


def retry_storm() -> bytes:
    """The service's rate limit is reached: each try of the model fails, until the turn is given up."""
    limited = agent("support", look_up, limits=Limits(max_model_attempts=8))
    return play(limited, [turn(Fail(BUSY))] * 8, "Where is order 17?")


def lost_result() -> bytes:
    """The process of the worker is killed while a card is charged; another takes the chat over, and does not know."""
    return asyncio.run(_lost_result())


CASHIER: Final = agent("cashier", charge_card)
SETTINGS: Final = Settings(lease=2.0)


async def _lost_result() -> bytes:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        url = f"sqlite:///{Path(folder) / 'chats.db'}"
        user = await stack.enter_async_context(Engine(url, [CASHIER], worker=False, settings=SETTINGS))
        worker = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.incidents.worker", url)
        try:
            chat = (await user.create_chat("cashier", "Charge 12 euros.")).chat
            await _charges(user, chat)
        finally:
            os.kill(worker.pid, signal.SIGKILL)
            await worker.wait()
        answers = ScriptedProvider(["I cannot tell whether your card was charged. Please wait for a colleague."])
        other = Engine(url, [CASHIER], settings=SETTINGS, providers={"scripted": answers})
        await stack.enter_async_context(other)
        await other.settled(chat)
        return await other.export_log(chat, blobs=True)


async def _charges(engine: Engine, chat: str) -> None:
    """Wait until the tool runs."""
    async for _ in engine.stream(chat):
        running = (await engine.state(chat)).control.running
        if running is not None and running.kind == "tools":
            return
