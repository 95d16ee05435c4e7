"""Logs to be run again: what an engine with a tool wrote, of a model that fails once, and of an interruption."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from chatfold.engine import Engine
from chatfold.replaying.logs import Log
from chatfold.settings import Settings
from chatfold.testing import UseTool, turn
from events.logfile import read_log
from generation.agents import Agent
from generation.errors import ClassifiedError, ProviderError
from generation.models import ModelConfig
from generation.providers.script import Turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool

SYSTEM: Final = "You help with orders."


def look_up(order: str) -> str:
    """Look an order up."""
    return f"order {order} is on its way"


def agent(system: str = SYSTEM, model: ModelConfig | str = "scripted", **more: Any) -> Agent:
    """Return the agent of the logs."""
    tools = [Tool.from_function(look_up, crash="rerun")]
    return Agent(name="support", model=model, system=system, tools=tools, **more)


def failure() -> ProviderError:
    """Return a failure that is worth another try."""
    return ProviderError(ClassifiedError(kind="overloaded", message="Too many.", retryable=True))


ANSWERS: Final[tuple[Turn, ...]] = (
    turn("Let me see.", UseTool("look_up", {"order": "A-17"})),
    turn("It is on its way."),
    turn("You are welcome."),
)


async def thanks(engine: Engine, chat: str) -> None:
    """Say thank you."""
    await engine.send_message(chat, "Thank you.")


async def written(
    answers: Sequence[Turn | str] = ANSWERS, then: Callable[[Engine, str], Awaitable[object]] = thanks
) -> bytes:
    """Return the log of a chat."""
    settings = Settings(model_retry_unit=0.001)
    models = {"scripted": ScriptedProvider(list(answers))}
    async with Engine("memory://", [agent()], providers=models, settings=settings) as engine:
        chat = (await engine.create_chat("support", "Where is order A-17?", chat_id="help")).chat
        await engine.settled(chat)
        await then(engine, chat)
        await engine.settled(chat)
        return await engine.export_log(chat)


def log_of(data: bytes) -> Log:
    """Return what is in the bytes of a log file."""
    file = read_log(data.splitlines(), "help.jsonl")
    return Log(name="help.jsonl", chat=file.header.chat, events=file.events, blobs=file.blobs)


def made() -> Log:
    """Return the log of a chat with a tool and a second turn."""
    return log_of(asyncio.run(written()))
