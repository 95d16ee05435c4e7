"""A worker of its own: ``python -m tests.e2e.worker_process JSON``. It runs until SIGTERM and tells its tests by lines.

Its tools stop for ever if it is the worker that will be lost, and answer otherwise.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

from chatfold.engine import Engine
from chatfold.hooks import HttpHook
from chatfold.settings import Settings
from generation.agents import Agent
from generation.providers.registry import ProviderSettings, make_provider
from generation.tools.contract import Tool, tool
from store import Store
from store.failpoints import arm
from store.sqlite import SqliteStore
from tests.e2e.tools import add


def tools(*, stop: bool) -> list[Tool]:
    """Return the tools."""

    async def run(name: str) -> str:
        say(f"begun {name}")
        if stop:
            await asyncio.Event().wait()
        return f"{name} done"

    @tool(crash="rerun")
    async def look() -> str:
        """Look at something: harmless."""
        return await run("look")

    @tool(crash="report")
    async def act() -> str:
        """Do something that must not be done twice."""
        return await run("act")

    return [look, act, add]


def say(line: str) -> None:
    """Tell the test."""
    print(line, flush=True)


def _store(order: dict[str, Any]) -> str | Store:
    """Return the order's store: one whose clock stands at ``now``, if that is ordered."""
    return SqliteStore(order["url"], clock=lambda: int(order["now"])) if "now" in order else str(order["url"])


async def main(order: dict[str, Any]) -> None:
    """Run a worker until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    provider = make_provider(order["provider"], ProviderSettings(base_url=order["base_url"], api_key="key-of-the-test"))
    agent = Agent(name=order["agent"], model=order["model"], tools=tools(stop=order["stop"]))
    settings = Settings(**order["settings"])
    hooks = [HttpHook(order["hook"], ["post_tool_use", "stop"])] if "hook" in order else []
    engine = Engine(_store(order), [agent], providers={order["provider"]: provider}, settings=settings, hooks=hooks)
    if "failpoints" in order:
        arm(order["failpoints"])
    if "now" in order:
        engine.runtime.now = lambda: int(order["now"])
    async with engine:
        say("ready")
        await stop.wait()
    await provider.close()
    say("stopped")


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
