"""Calls of then and tools of today: whether a tool that was renamed, removed or given other arguments takes them.

A rerun takes results from its log, so that nothing else of it would tell. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from events.parts import ToolResultPart
from generation.tools.arguments import fits, read_arguments, was_unfit
from generation.tools.contract import Tool
from generation.tools.policy import ToolCall
from generation.tools.registry import CallRefused, ToolSet


def call_today(call: ToolCall, result: ToolResultPart | None, tools: ToolSet) -> str | None:
    """Return what becomes of a call today, where that is not what became of it then; None where it is.

    Names of arguments are those of declarations. Values are content, and none is told.

    Args:
        call: The call, as it was started.
        result: What the log has of it; None where there is nothing.
        tools: Today's tools, of the turn.
    """
    if result is None or result.started_at is None:
        return None  # that nothing ran had other reasons: an interruption, a hook
    said = None if result.output is None else result.output.value
    then = not (result.is_error and isinstance(said, str) and was_unfit(said))
    now = call.in_force is not None and fits(tools, call.name, call.in_force)
    if then == now:
        return None
    if now:
        return f"{call.name} would be run today, and was not then: the call was refused"
    try:
        tool = tools.find(call.name)
    except CallRefused:
        return f"there is no tool {call.name} today, which was called then"
    why = "; ".join(_misfits(tool, call.in_force)) or "a value of them is none"
    return f"{call.name} does not take the arguments of then: {why}"


def _misfits(tool: Tool, arguments: str | None) -> Iterator[str]:
    """Yield how the names of arguments are not those that a tool takes."""
    given = read_arguments(arguments).keys()
    known, required = tool.schema.get("properties"), tool.schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in given:
            yield f"{name} is missing"
    if isinstance(known, dict):
        yield from (f"{name} is not known" for name in sorted(given - known.keys()))
