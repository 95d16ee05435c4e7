"""Calls of then and tools of today: whether a tool that was renamed, removed or given other arguments takes them.

A rerun takes results from its log, so that nothing else of it would tell. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from events.diff import Change
from events.effects import Effects
from events.envelope import Recorded
from events.parts import ToolCallPart, ToolResultPart
from events.records import ToolPolicy
from generation.tools.arguments import fits, was_unfit
from generation.tools.misfits import misfits
from generation.tools.policy import ToolCall
from generation.tools.registry import CallRefused, ToolSet


def call_today(call: ToolCall, result: ToolResultPart | None, tools: ToolSet, *, redacted: bool = False) -> str | None:
    """Return what becomes of a call today, where that is not what became of it then; None where it is.

    Names of arguments are those of declarations. Values are content, and none is told.

    Args:
        call: The call, as it was started.
        result: What the log has of it; None where there is nothing.
        tools: Today's tools, of the turn.
        redacted: Whether contents are made up: then it is asked whether there is the tool, and no more.
    """
    if result is None or result.started_at is None:
        return None  # that nothing ran had other reasons: an interruption, a hook
    if redacted:
        return not_taken(call.name, None, tools)
    said = None if result.output is None else result.output.value
    then = not (result.is_error and isinstance(said, str) and was_unfit(said))
    why = not_taken(call.name, call.in_force, tools)
    if then == (why is None):
        return None
    return why or f"{call.name} would be run today, and was not then: the call was refused"


def not_taken(name: str, arguments: str | None, tools: ToolSet) -> str | None:
    """Return why today's tools would not take a call of then; None where they do.

    Args:
        name: The tool's name.
        arguments: The call's, as JSON text; None where they are not at hand: then it is asked for the tool alone.
        tools: Today's tools.
    """
    try:
        tool = tools.find(name)
    except CallRefused:
        return f"there is no tool {name} today, which was called then"
    if arguments is None or fits(tools, name, arguments):
        return None
    why = "; ".join(misfits(tool, arguments)) or "its declaration refuses them"
    return f"{name} does not take the arguments of then: {why}"


FROZEN: Final = frozenset(ToolPolicy.__struct_fields__) & frozenset(ToolCallPart.__struct_fields__) - {"name"}
"""What a call has of its tool's declaration, from its commit on."""


def frozen_changes(want: Recorded, found: Iterable[Change]) -> Iterator[tuple[ToolCallPart, frozenset[str]]]:
    """Yield the calls of an event that have another declaration of their tool, and the paths of what is another one."""
    paths = {change.path for change in found}
    event = want.event
    if not isinstance(event, Effects):
        return
    for place, message in enumerate(event.added):
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolCallPart):
                others = paths & {f"$.added[{place}].parts[{at}].{name}" for name in FROZEN}
                if others:
                    yield part, frozenset(others)
