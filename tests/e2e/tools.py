"""Tools of the conversations, and doors at which they stop until a test lets them go on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from generation.tools.contract import Tool, client_tool, tool
from tests.e2e.kit import PATIENCE

ASK = client_tool(
    "ask_client",
    "Ask the client.",
    {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
)


@dataclass
class Door:
    """A tool that says when it has begun, and ends when it is opened."""

    name: str
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    runs: int = 0

    def tool(self, *, needs_approval: bool = False, crash: str = "report") -> Tool:
        """Return the tool: it answers with its name and what it was given."""

        async def walk(to: str) -> str:
            """Walk through the door.

            Args:
                to: Where to.
            """
            self.runs += 1
            self.begun.set()
            await self.opened.wait()
            return f"{self.name} to {to}"

        assert crash in {"report", "rerun"}
        return Tool.from_function(
            walk, name=self.name, needs_approval=needs_approval, crash="rerun" if crash == "rerun" else "report"
        )

    async def until_begun(self) -> None:
        """Wait until the tool runs."""
        async with asyncio.timeout(PATIENCE):
            await self.begun.wait()


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
