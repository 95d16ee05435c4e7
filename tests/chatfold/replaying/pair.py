"""Two chats that an engine wrote: alike until a tool fails in one of them."""

from __future__ import annotations

import asyncio
from functools import cache

from chatfold.engine import Engine
from events.codec import decode_each
from events.envelope import Recorded
from events.logfile import read_log
from generation.agents import Agent
from generation.providers.script import UseTool, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool, client_tool


def look_up(order: str) -> str:
    """Look an order up."""
    if order == "gone":
        raise LookupError(order)
    return f"order {order} is on its way"


def pay(order: str) -> str:
    """Pay for an order."""
    return f"paid {order}"


def agent() -> Agent:
    """An agent with a tool that may be run again, one that may not, and one of the client."""
    where = client_tool("where", "Ask where the user is.", {"type": "object", "properties": {}})
    tools = [Tool.from_function(look_up, crash="rerun"), Tool.from_function(pay), where]
    return Agent(name="support", model="scripted/x", tools=tools)


def model(order: str) -> ScriptedProvider:
    """What its model says: looks an order up, pays for it, asks the client where it is, and ends."""
    return ScriptedProvider(
        [
            turn("Let me see.", UseTool("look_up", {"order": order})),
            turn(UseTool("pay", {"order": order})),
            turn(UseTool("where")),
            "Done.",
        ]
    )


@cache
def log(order: str = "A-1") -> bytes:
    """The log file of one such chat."""

    async def talk() -> bytes:
        async with Engine("memory://", [agent()], providers={"scripted": model(order)}) as engine:
            await engine.create_chat("support", f"Where is {order}?", owner="ada", chat_id=f"chat-{order}")
            state = await engine.settled(f"chat-{order}")
            action = state.control.action
            assert action is not None
            await engine.submit_tool_results(f"chat-{order}", action.id, {str(action.items[0].call): "at home"})
            await engine.settled(f"chat-{order}")
            return await engine.export_log(f"chat-{order}")

    return asyncio.run(talk())


def recorded(order: str = "A-1") -> list[Recorded]:
    """Its events."""
    file = read_log(log(order).splitlines(), order)
    return list(decode_each(file.events, blobs=file.blobs))
