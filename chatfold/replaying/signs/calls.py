"""Calls of tools that fail, or are made again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from chatfold.replaying.signs.sign import Sign, calls_of
from chatfold.replaying.turns import Turn
from chatfold.replaying.users import denied_calls
from events import vocabulary as v
from events.control import names_of_calls
from events.parts import ToolResultPart
from generation.tools.registry import NO_TOOL, NOT_TAKEN

REPEATS: Final = 3
"""Calls of one tool with the same arguments in a turn from which on they are told."""
_MOST: Final = 5
"""Ways in which calls of a turn failed that are told, one for each tool and way."""
_LONGEST: Final = 120
"""Characters of an error of a tool that are told."""


class _How(NamedTuple):
    """A way in which calls fail: how the model is told begins, what is said of it, and what to do about it."""

    begins: tuple[str, ...]
    said: str
    advice: str


_ERROR: Final = _How(
    (),
    "which ended in an error",
    "See what the tool said, and what the model made of it (`chatfold show`). A tool that is away says so here alone: "
    "the turn goes on.",
)
_HOW: Final = (
    _ERROR,
    _How(
        NO_TOOL,
        "and there is no such tool, or it is not active",
        "See which tools the agent has, and which of them are active: the model made the name up, or a prompt names a "
        "tool that is gone.",
    ),
    _How(
        (NOT_TAKEN,),
        "with arguments that it does not take",
        "See the names and descriptions of the tool's arguments: they are all that the model knows of it.",
    ),
)
"""The ways, the worst first. Which one it was is told by the text, so without contents each counts as an error."""


class _Failed(NamedTuple):
    """A call that failed: the version that tells so, its tool, how, and what it ended with where that is at hand."""

    version: int
    tool: str
    how: _How
    text: str | None


def failed_calls(turn: Turn) -> Iterator[Sign]:
    """Calls that ended in an error of their own, which the model was told: by tool and way, the worst first."""
    failed = list(_failed(turn))
    ways: dict[tuple[int, str], list[_Failed]] = defaultdict(list)
    for each in failed:
        ways[_HOW.index(each.how), each.tool].append(each)
    ordered = sorted(ways.items(), key=lambda item: item[0][0])
    for number, ((_, tool), same) in enumerate(ordered[:_MOST], start=1):
        last, left = same[-1], len(ordered) - number
        often = "once" if len(same) == 1 else f"{len(same)} times"
        more = f" Calls failed in {left} more ways." if number == _MOST and left else ""
        yield Sign(
            last.version,
            f"The model called {tool} {often}, {last.how.said}{_told(last.text, len(same))}{more}",
            last.how.advice,
            same[0].version,
            failed[0].version,
        )


def _failed(turn: Turn) -> Iterator[_Failed]:
    """Yield each call that failed; one that was not approved is none."""
    for step in turn.steps:
        event = step.recorded.event
        names, denied = names_of_calls(step.before.control.indexes.open_calls), denied_calls(event)
        for part in v.results_of(event):
            if part.failed and part.call in names and part.call not in denied:
                text = _text(part)
                how = next((how for how in _HOW if how.begins and (text or "").startswith(how.begins)), _ERROR)
                yield _Failed(step.recorded.version, names[part.call], how, text)


def _text(part: ToolResultPart) -> str | None:
    """Return what a call ended with, on a line; None where that is not at hand."""
    if part.output is None or not part.output.available:
        return None
    return " ".join(str(part.output.value).split())


def _told(text: str | None, times: int) -> str:
    """Say what the model was told, shortened: the end of a sentence."""
    if not text:
        return "; the model was told."
    said = f"{text[:_LONGEST]}..." if len(text) > _LONGEST else text
    end = "" if said.endswith((".", "!", "?")) else "."
    return f"; the model was told{', at last' if times > 1 else ''}: {said}{end}"


def repeated_call(turn: Turn) -> Iterator[Sign]:
    """Calls of one tool with the same arguments, where contents are at hand."""
    made: dict[tuple[str, str], list[int]] = defaultdict(list)
    for step in turn.steps:
        for part in calls_of(step.recorded.event):
            if part.arguments.available:
                made[part.name, str(part.arguments.value)].append(step.recorded.version)
    for (name, _), versions in sorted(made.items(), key=lambda item: -len(item[1])):
        if len(versions) >= REPEATS:
            yield Sign(
                versions[-1],
                f"The model called {name} {len(versions)} times with the same arguments, from version {versions[0]} "
                "on.",
                "See what the tool answered: an answer that says what is wrong and what to do instead ends such loops.",
                versions[1],
            )
