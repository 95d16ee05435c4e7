"""The tools of a turn by name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, final

from generation.errors import ToolDeclarationError
from generation.tools.contract import Tool

_NOT_FOUND: Final = "Tool not found: "
_NOT_ACTIVE: Final = "Tool not active in this turn: "
NO_TOOL: Final = (_NOT_FOUND, _NOT_ACTIVE)
"""How it begins what a model is told that called a tool which there is not."""
NOT_TAKEN: Final = "The arguments are not valid, so the tool was not run: "
"""How it begins what a model is told that gave arguments which the tool does not take."""


class CallRefused(Exception):
    """A call cannot run as the model made it; the text tells the model why."""


@final
class ToolSet:
    """Tools by name, in the order of their names.

    Args:
        tools: All tools of the agent.
        active: Names of those that the model may call in this turn; None for all.

    Raises:
        ToolDeclarationError: Two tools have one name, or something is no tool.
    """

    def __init__(self, tools: Iterable[Tool] = (), active: Collection[str] | None = None) -> None:
        self._tools: dict[str, Tool] = {}
        tools = tuple(tools)
        for each in tools:
            if not isinstance(each, Tool):
                raise ToolDeclarationError(getattr(each, "__name__", repr(each)), "is no Tool: decorate it with @tool")
        for tool in sorted(tools, key=lambda each: each.name):
            if tool.name in self._tools:
                raise ToolDeclarationError(tool.name, "two tools of one agent have this name")
            self._tools[tool.name] = tool
        self._active = None if active is None else frozenset(active)

    def __iter__(self) -> Iterator[Tool]:
        return (tool for name, tool in self._tools.items() if self._active is None or name in self._active)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def find(self, name: str) -> Tool:
        """Return the active tool of this name.

        Raises:
            CallRefused: There is none, or it is not active.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise CallRefused(f"{_NOT_FOUND}{name or '(the call has no name)'}. Nothing was run.")
        if self._active is not None and name not in self._active:
            raise CallRefused(f"{_NOT_ACTIVE}{name}. Nothing was run.")
        return tool
