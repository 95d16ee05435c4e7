"""Calls of tools that fail, or are made again and again."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from chatfold.replaying.signs.sign import Sign, calls_of
from chatfold.replaying.turns import Turn
from events import vocabulary as v
from events.control import names_of_calls
from events.parts import ToolResultPart

REPEATS: Final = 3
"""Calls of one tool with the same arguments in a turn from which on they are told."""
_LONGEST: Final = 120
"""Characters of an error of a tool that are told."""


def failed_calls(turn: Turn) -> Iterator[Sign]:
    """Calls that ended in an error of their own, which the model was told."""
    failed = list(_failed(turn))
    for version, _, output in failed[-1:]:
        counted = Counter(name for _, name, _ in failed)
        times = {name: "once" if count == 1 else f"{count} times" for name, count in counted.most_common(5)}
        said = ", ".join(f"{name} {often}" for name, often in times.items())
        yield Sign(
            version,
            f"Calls ended in an error, which the model was told: {said}{output}.",
            "See what the tool said, and what the model made of it (`chatfold show`). A tool that is away, or that "
            "does not take what the model gives, says so here alone: the turn goes on.",
            failed[0][0],
        )


def _failed(turn: Turn) -> Iterator[tuple[int, str, str]]:
    """Yield each call that failed: the version that tells so, its tool, and what it ended with."""
    for step in turn.steps:
        names = names_of_calls(step.before.control.indexes.open_calls)
        for part in v.results_of(step.recorded.event):
            if part.failed and part.call in names:
                yield step.recorded.version, names[part.call], _shown(part)


def _shown(part: ToolResultPart) -> str:
    """Return what a call ended with, shortened; nothing where that is not at hand."""
    if part.output is None or not part.output.available:
        return ""
    text = " ".join(str(part.output.value).split())
    return f"; at last: {text[:_LONGEST]}{'...' if len(text) > _LONGEST else ''}"


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
