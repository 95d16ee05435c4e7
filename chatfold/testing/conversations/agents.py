"""Who answers in random conversations: two agents with every kind of tool, and the models that they switch between."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from chatfold.testing.conversations.answers import LIMIT
from chatfold.testing.conversations.hooks import Meddler
from events.content import Json
from events.records import Budget
from generation.agents import Agent, Limits
from generation.models import ModelConfig
from generation.naming import Titles
from generation.providers.native import WebSearch
from generation.tools.contract import Tool, ToolContext, ToolOutput, client_tool
from generation.tools.files import ToolFile

MEDDLER: Final[ContextVar[Meddler | None]] = ContextVar("chatfold_talking_meddler", default=None)
"""The hooks of the conversation that a tool is called in: tools are declared once, and conversations are many."""

PDF: Final = b"%PDF-1.4\n1 0 obj << /Type /Page >> endobj"
PNG: Final = b"\x89PNG\r\n\x1a\n"
"""What is shown to models: as much of a file as anybody looks at."""


def _ran(context: ToolContext, given: Json) -> None:
    meddler = MEDDLER.get()
    if meddler is not None:
        meddler.ran(context.chat, context.idempotency_key, given)


async def _look(context: ToolContext, a: int = 0) -> str:
    """Look at something."""
    _ran(context, a)
    return f"seen {a}"


async def _wait(context: ToolContext, a: int = 0) -> dict[str, int]:
    """Wait a little."""
    _ran(context, a)
    await asyncio.sleep(a % 4 / 4)
    return {"a": a}


async def _fail() -> str:
    """Fail."""
    raise ValueError("it fails")


async def _grant() -> str:
    """Do what the client allows."""
    return ""


async def _draw(a: int = 0) -> ToolOutput:
    """Draw a picture, and write a page."""
    files = (ToolFile(PNG, "image/png", name=f"{a}.png"), ToolFile(PDF, "application/pdf"))
    return ToolOutput(f"drawn {a}", media=files[: 1 + a % 2], attachments=files[a % 2 :])


_TOOLS: Final = (
    Tool.from_function(_look, name="look", crash="rerun"),
    Tool.from_function(_wait, name="wait"),
    Tool.from_function(_fail, name="fail"),
    Tool.from_function(_grant, name="grant", needs_approval=True),
    Tool.from_function(_draw, name="draw", crash="rerun"),
    client_tool("ask", "Ask the client.", {"type": "object", "properties": {}}),
)


def _model(provider: str, name: str, *, thinks: bool = True, **more: Any) -> ModelConfig:
    effort = {"effort": "medium", "max_effort": "high"} if thinks else {}
    return ModelConfig(provider=provider, name=name, context_limit=LIMIT, **effort, **more)  # type: ignore[arg-type]


_KEEPING: Final = (
    _model("openai", "gpt-5.1", options={"store": True}),
    _model("openai", "gpt-5.2", options={"store": True}),
)
_SEARCHING: Final = (
    _model("anthropic", "claude-sonnet-4-5"),
    _model("anthropic", "claude-opus-5"),
    _model("openai", "gpt-5"),
    _model("openai", "gpt-5-mini"),
    *_KEEPING,
)
_ALL: Final = (*_SEARCHING, _model("openai-chat", "gpt-5"), _model("openai-chat", "any", thinks=False))
_LIMITS: Final = Limits(max_steps=6, max_model_attempts=4, action_timeout=4.0)

AGENTS: Final = (
    Agent(
        name="plain",
        model=_ALL[0],
        models=_ALL,
        tools=_TOOLS,
        limits=_LIMITS,
        system="Be brief.",
        titles=Titles(cheap=["openai/gpt-5-mini"]),
    ),
    Agent(
        name="searching",
        model=_ALL[1],
        models=_SEARCHING,
        tools=_TOOLS,
        limits=replace(_LIMITS, budget=Budget(tokens=400)),
        provider_tools=[WebSearch()],
    ),
    Agent(name="keeping", model=_KEEPING[0], models=(*_KEEPING, _ALL[0]), tools=_TOOLS[:3], limits=_LIMITS),
)
MODELS: Final = {each.name: [model.reference for model in each.configured] for each in AGENTS}
"""References of the models that each agent has."""
