"""Two logs side by side, by what was decided and which transitions were taken, whatever their texts, times and ids.

Owns what makes two moves the same, which events are no moves of their own, and the place where two logs part. A fork
did until it was forked what its origin did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from chatstate.classify import classify
from events.control import OpenCall
from events.effects import Effects
from events.envelope import Recorded
from events.given import checked_items, checked_mapping, checked_sequence
from events.ids import CallKey
from events.indexes import find_call
from events.records import Origin
from events.replay import ReplayStep, replay
from events.values import checked_whole
from events.vocabulary import ChatForked, decision_of

BESIDE: Final = frozenset(
    {
        "acquire", "release", "record_policy", "set_title", "set_labels", "set_turn_label", "set_pinned",
        "set_retention", "mark_context", "record_side_call", "erase",
    }
)  # fmt: skip
"""Triggers that are no moves: who runs a chat, under what policy, and how it is kept. What the chat does follows from
none of them alone; where a policy makes a difference, the decision under it is another."""

_COPYING: Final = frozenset({"fork", "import_messages"})
"""Triggers by which a fork gets what its origin has."""


class Move(Struct, frozen=True, kw_only=True):
    """What an event did, but for texts, times and ids: two moves that are equal are the same one in two logs.

    Attributes:
        source, dest: Execution states before and after it.
        trigger: The transition.
        rule, action: Of the decision behind it; None where there is none.
        tools: Names of the tools that it calls, starts or answers, in order.
        cause: The kind of its error, or why it ended a turn; None where it has none.
    """

    source: str
    trigger: str
    dest: str
    rule: str | None = None
    action: str | None = None
    tools: tuple[str, ...] = ()
    cause: str | None = None

    def __str__(self) -> str:
        """Say it in a line: ``R0 start_attempt R0, D1 run_tools (look_up)``."""
        said = f"{self.source} {self.trigger} {self.dest}"
        if self.rule is not None:
            said += f", {self.rule} {self.action}"
        if self.tools:
            said += f" ({', '.join(self.tools)})"
        return f"{said}: {self.cause}" if self.cause is not None else said


class Moved(Struct, frozen=True):
    """A move, and the event that made it.

    Attributes:
        move: The move.
        recorded: The event.
        origin: The chat in whose log it stands, where that is one that the chat was forked from; None for its own log.
        copied: The version of the fork's log by which it has what its origin did; None for a move of its own log.
    """

    move: Move
    recorded: Recorded
    origin: str | None = None
    copied: int | None = None

    @property
    def version(self) -> int:
        """The version of the chat's own log by which this was done."""
        return self.recorded.version if self.copied is None else self.copied


class Comparison(Struct, frozen=True, kw_only=True):
    """How two logs compare.

    Attributes:
        same: Moves that both made before they part.
        last: The last of these, in either log; None where they part at once.
        then: What either did next, the parting move first; both are empty where the logs do not part.
    """

    same: int
    last: tuple[Moved, Moved] | None
    then: tuple[tuple[Moved, ...], tuple[Moved, ...]]

    @property
    def parts(self) -> bool:
        """Whether the logs part: another move in either, or one log that goes on where the other ends."""
        return any(self.then)


NO_ORIGINS: Final[Mapping[str, Sequence[Recorded]]] = MappingProxyType({})


def moves(log: Iterable[Recorded], origins: Mapping[str, Sequence[Recorded]] = NO_ORIGINS) -> Iterator[Moved]:
    """Yield the moves of a log, from its first event on. Contents are not read.

    Args:
        log: The log.
        origins: Logs by the ids of their chats. Where the chat is a fork of one of them, it begins with what that one
            did up to the fork, in the place of the copying; where its origin is not there, with the copying.

    Raises:
        EventsError: An event cannot be read or applied.
        InvalidValue: They are no events, or not those of one log; or the origins are no logs by the ids of chats.
    """
    checked_mapping(origins, "$.origins", "logs by the ids of their chats")
    for chat, events in origins.items():
        checked_sequence(events, f"$.origins.{chat}", "the events of a log, as decode_log gives them")
    yield from _moves(log, origins)


def forked_from(log: Sequence[Recorded]) -> Origin | None:
    """Return what a chat was forked from, and where; None where it is no fork."""
    return log[0].event.origin if log and isinstance(log[0].event, ChatForked) else None


def reaches(log: Sequence[Recorded] | None, origin: Origin) -> bool:
    """Whether the log of an origin is there, up to the version that was forked."""
    return log is not None and len(log) >= origin.version


def _moves(log: Iterable[Recorded], origins: Mapping[str, Sequence[Recorded]]) -> Iterator[Moved]:
    steps = replay(log)
    first = next(steps, None)
    if first is None:
        return
    origin, copied = forked_from([first.recorded]), 1
    steps = chain([first], steps)
    if origin is not None and reaches(before := origins.get(origin.chat), origin):
        for step in steps:
            if step.recorded.event.trigger not in _COPYING:
                steps = chain([step], steps)
                break
            copied = step.recorded.version
        # Without itself: a log that was taken over under its origin's id would be its own origin.
        further = {chat: events for chat, events in origins.items() if chat != origin.chat}
        for moved in _moves(islice(before or (), origin.version), further):
            yield replace(moved, origin=moved.origin or origin.chat, copied=copied)
    for step in steps:
        if step.recorded.event.trigger not in BESIDE:
            yield Moved(_move(step), step.recorded)


def align(one: Iterable[Moved], other: Iterable[Moved], *, context: int = 5) -> Comparison:
    """Compare two logs by their moves, up to where they part.

    Args:
        one: The moves of the first log.
        other: Those of the second.
        context: Moves of either from the parting on that are told, at least 1.

    Raises:
        EventsError: An event of either cannot be read or applied.
        InvalidValue: They are no moves, or ``context`` is less than 1.
    """
    checked_whole(context, "$.context", least=1)
    wanted = "the moves of a log, as moves(events) gives them"
    left, right = checked_items(one, Moved, "$.one", wanted), checked_items(other, Moved, "$.other", wanted)
    same, last = 0, None
    while True:
        first, second = next(left, None), next(right, None)
        if first is None and second is None:
            return Comparison(same=same, last=last, then=((), ()))
        if first is None or second is None or first.move != second.move:
            return Comparison(same=same, last=last, then=(_next(first, left, context), _next(second, right, context)))
        same, last = same + 1, (first, second)


def _next(first: Moved | None, rest: Iterator[Moved], context: int) -> tuple[Moved, ...]:
    if first is None:
        return ()
    return (first, *(moved for moved, _ in zip(rest, range(context - 1), strict=False)))


def _move(step: ReplayStep) -> Move:
    event = step.recorded.event
    decision = decision_of(event)
    return Move(
        source=str(classify(step.before.control)),
        trigger=event.trigger,
        dest=str(classify(step.after.control)),
        rule=None if decision is None else decision.rule,
        action=None if decision is None else decision.action,
        tools=_tools(step),
        cause=_cause(step),
    )


def _tools(step: ReplayStep) -> tuple[str, ...]:
    event, open_calls = step.recorded.event, step.before.control.indexes.open_calls
    keys: list[CallKey | None] = [*getattr(event, "calls", ()), *(item.call for item in getattr(event, "items", ()))]
    if (result := getattr(event, "result", None)) is not None:
        keys.append(result.call)
    called = []
    if isinstance(event, Effects):
        keys += [answer.call for answer in event.answers]
        called = [part.name for _, part in event.tool_calls(step.recorded.version)]
    return (*(_name(key, open_calls) for key in keys if key is not None), *called)


def _name(key: CallKey, open_calls: tuple[OpenCall, ...]) -> str:
    place = find_call(open_calls, key)
    return "?" if place is None else open_calls[place].name


def _cause(step: ReplayStep) -> str | None:
    event = step.recorded.event
    error = getattr(event, "error", None)
    if error is not None:
        return str(error.kind)
    cause = getattr(event, "cause", None)
    if cause is None and (result := getattr(event, "result", None)) is not None:
        cause = result.reason or ("error" if result.is_error else None)
    return None if cause is None else str(cause)
