"""A worker of a chat with a budget, in a process of its own: ``python -m tests.chatfold.budget_process URL``."""

from __future__ import annotations

import asyncio
import sys

from chatfold import Agent, Budget, Engine, Limits, ModelConfig, Prices, Settings
from chatfold.testing import ScriptedProvider, turn
from events.messages import Usage

SPENT = 100
"""Tokens that each answer takes, and micro-units that it costs."""


def engine(url: str, *, worker: bool = True, timeout: float = 300.0) -> Engine:
    """Return an engine whose agent may spend as much as one answer takes."""
    provider = ScriptedProvider(lambda _: turn("Done.", usage=Usage(input=SPENT)))
    limits = Limits(budget=Budget(tokens=SPENT), action_timeout=timeout)
    agent = Agent(name="a", model=ModelConfig(provider="scripted", name="m", prices=Prices(input=1)), limits=limits)
    settings = Settings(poll=0.05, lease=0.6)
    return Engine(url, [agent], worker=worker, providers={"scripted": provider}, settings=settings)


async def main(url: str) -> None:
    """Run the chats of a store until killed."""
    async with engine(url):
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
