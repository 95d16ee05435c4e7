"""Which calls of tools were under way or began after a version of a log: what a fork from there cannot take back.

Owns what counts as one: a call that a worker started, one that the client answered, one that the provider ran. A fork
copies messages; what tools did in the world stays done, and its model may do it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from events.control import OpenCall, refused_as_one
from events.envelope import Recorded
from events.ids import CallKey
from events.indexes import find_call
from events.parts import Runner, ToolCallPart, ToolResultPart
from events.replay import ReplayStep, replay
from events.values import checked_whole
from events.vocabulary import AttemptStarted, ResultsSubmitted, StepCommitted


class ToolEffect(Struct, frozen=True, kw_only=True):
    """A call of a tool that happened, or may have.

    Attributes:
        version: The event that says so: of its start, or of its result where another than a worker ran it.
        call: The call's key; None for one that the provider ran within its answer.
        tool: The tool's name.
        runner: Who ran it.
        repeatable: Whether the tool says that running it once more does no harm (``crash="rerun"``).
    """

    version: int
    call: CallKey | None
    tool: str
    runner: Runner
    repeatable: bool


def effects_after(log: Iterable[Recorded], version: int) -> Iterator[ToolEffect]:
    """Yield the calls of tools that happened after a version, in the order of the log; each once for each start.

    Args:
        log: The whole log; contents are not read.
        version: Events up to this one do not count.

    Raises:
        EventsError: An event cannot be read or applied.
        InvalidValue: It is no log, or no version.
    """
    checked_whole(version, "$.version")
    for step in replay(log):
        if step.recorded.version > version:
            yield from _effects(step)


def _effects(step: ReplayStep) -> Iterator[ToolEffect]:
    at, event, open_calls = step.recorded.version, step.recorded.event, step.before.control.indexes.open_calls
    match event:
        case AttemptStarted(kind="tools", calls=calls) if not refused_as_one(open_calls):
            yield from _of(at, calls, open_calls)
        case ResultsSubmitted(added=added):
            parts = (part for message in added for part in message.parts)
            done = [part.call for part in parts if isinstance(part, ToolResultPart) and part.reason is None]
            yield from _of(at, done, open_calls)
        case StepCommitted(added=added):
            for part in (part for message in added for part in message.parts):
                if isinstance(part, ToolCallPart) and part.runner == "provider":
                    yield ToolEffect(version=at, call=None, tool=part.name, runner="provider", repeatable=False)
        case _:
            return


def _of(version: int, calls: Iterable[CallKey], open_calls: tuple[OpenCall, ...]) -> Iterator[ToolEffect]:
    for key in calls:
        if (place := find_call(open_calls, key)) is not None:
            call = open_calls[place]
            repeatable = call.crash == "rerun"
            yield ToolEffect(version=version, call=key, tool=call.name, runner=call.runner, repeatable=repeatable)
