"""What the tests of running tools share."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection

from events.ids import CallKey, ChatId, WorkerId
from generation.tools.contract import Tool
from generation.tools.execute import CallEnvironment
from generation.tools.policy import ToolCall
from generation.tools.registry import ToolSet


def env(
    *tools: Tool, active: Collection[str] | None = None, budget: int = 65536, cleanup: float = 5.0
) -> CallEnvironment:
    """An environment whose clock counts 1, 2, 3."""
    ticks = itertools.count(1)
    return CallEnvironment(
        chat=ChatId("chat"),
        epoch=7,
        worker=WorkerId("worker"),
        attempt=3,
        tools=ToolSet(tools, active),
        now=lambda: next(ticks),
        budget=budget,
        cleanup=cleanup,
    )


def call(name: str, arguments: str | None = "{}", *, key: str = "5.0.1", exclusive: bool = False) -> ToolCall:
    """A call of a tool."""
    return ToolCall(key=CallKey(key), name=name, arguments=arguments, exclusive=exclusive)


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until a condition holds that a thread or another task brings about."""
    while not condition():  # noqa: ASYNC110 - what is waited for knows no event of this loop
        await asyncio.sleep(0.001)
