"""A worker that charges cards, and is killed while it does: ``python -m tests.incidents.worker URL``."""

from __future__ import annotations

import asyncio
import sys

from chatfold import Engine
from chatfold.testing import ScriptedProvider, UseTool, turn
from tests.incidents.scenes import CASHIER, SETTINGS


async def work(url: str) -> None:
    """Run chats until killed."""
    model = ScriptedProvider([turn("One moment.", UseTool("charge_card", {"amount": 12.0}))])
    async with Engine(url, [CASHIER], settings=SETTINGS, providers={"scripted": model}):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
