"""An engine over the memory store and the scripted model, with tools that give, fail and hang, and observers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from chatfold import Agent, Engine, Settings, client_tool, tool
from chatfold.naming import Titles
from events.control import Control, decode_control
from events.ids import ChatId
from generation.errors import ClassifiedError
from generation.models import ModelConfig
from generation.observing import Observer
from generation.providers.script import Fail, Script
from generation.providers.scripted import ScriptedProvider

SECRET = "the word that nobody may see"
MODEL = {"provider": "scripted", "model": "any"}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


PICK = client_tool("pick", "Let the user pick.", {"type": "object", "properties": {}})
OVERLOADED = Fail(ClassifiedError(kind="overloaded", message="Too much.", provider="scripted", retryable=True))
REFUSED = Fail(ClassifiedError(kind="auth", message="No.", provider="scripted"))


def engine_of(
    script: Script, observers: Iterable[Observer] = (), *, titles: Titles | None = None, **settings: float
) -> Engine:
    model = ModelConfig(provider="scripted", name="any", context_limit=100_000)
    agent = Agent(name="helper", model=model, tools=[add, fail, PICK], system=f"Be kind. {SECRET}", titles=titles)
    given = Settings(poll=0.05, grace=0.2, model_retry_unit=0.01, **settings)  # type: ignore[arg-type]
    providers = {"scripted": ScriptedProvider(script)}
    return Engine("memory://", [agent], providers=providers, settings=given, observers=observers)


async def said(engine: Engine, text: str = "Hello.", chat: str | None = None) -> str:
    """Send a message, in a new chat unless one is given, and wait until nothing is owed."""
    if chat is None:
        chat = (await engine.create_chat("helper", owner="ann", message=text)).chat
    else:
        await engine.send_message(chat, text)
    async with asyncio.timeout(30):
        await engine.settled(chat)
    return chat


async def control_of(engine: Engine, chat: str) -> Control:
    loaded = await engine.store.load_header(ChatId(chat))
    assert loaded is not None
    return decode_control(loaded.header.control)
