"""``why``: a decision, or where an event came from, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chatfold.cli.guard import UsageProblem
from chatfold.cli.output import Channel, Out, printable
from chatfold.cli.shapes import WhyLine
from chatfold.cli.sources import must_have, opened
from chatfold.replaying.causes import Cause, causes
from chatfold.replaying.incidents import incidents
from chatfold.replaying.logs import Log
from chatfold.replaying.words import Explanation
from chatstate.classify import classify
from events.diff import plain, shown
from events.envelope import Recorded
from events.replay import replay

MOST: Final = 40
"""Events of a turn that are told, the newest; those before are counted."""


@dataclass(frozen=True)
class _Stand:
    """Where a chat stands: its status and execution state, and the version of the event that opened its turn."""

    state: str
    turn: int


def run_why(
    out: Out, source: str, version: int | None, *, everything: bool, json: bool, db: str | None, log_level: str | None
) -> None:
    """Tell why; see the command.

    Raises:
        UsageProblem: The log has no such version, or both a version and ``--all`` were given.
        typer.Exit: With 1, where the log is not as it was written.
    """
    if version is not None and everything:
        raise UsageProblem("name a version or say --all, not both")
    with opened(out, source, db, log_level) as log:
        events = list(log.bare())
        told = list(causes(events))
        must_have(log.name, 1 if version is None else version, len(told), least=1)
        happened = _happened(log)
        stand = _stand(events)
        first = 1 if everything else version or stand.turn
        wanted = told[first - 1 : version]
        if json:
            for cause in wanted:
                out.data.json(_line(log.name, cause, happened))
        elif version is not None:
            _print_event(out.data, wanted[0], told, happened)
        else:
            _print_way(out, wanted if everything else wanted[-MOST:], left_out=0 if everything else len(wanted) - MOST)
            out.data.line(printable(f"{log.name} is {stand.state} after version {len(told)}."))
            newest = next((cause for cause in reversed(told) if cause.decision is not None), None)
            if newest is not None:
                out.data.line()
                _print_event(out.data, newest, told, happened)


def _happened(log: Log) -> Mapping[int, list[str]]:
    """Return what went wrong, in the words of ``doctor``, by the version that tells most of it."""
    found: dict[int, list[str]] = defaultdict(list)
    for each in incidents(log.recorded()):
        found[each.version].append(each.what)
    return found


def _stand(log: Iterable[Recorded]) -> _Stand:
    turn, state = 1, "none"
    for step in replay(log):
        control = step.after.control
        if control.turns > step.before.control.turns:
            turn = step.recorded.version
        state = f"{control.status} ({classify(control)})"
    return _Stand(state, turn)


def _print_way(out: Out, way: Sequence[Cause], *, left_out: int) -> None:
    if left_out > 0:
        out.note(f"{left_out} events of this turn before these; --all shows every event")
    for cause in way:
        decided = f"{cause.decision.rule} {cause.decision.action}: " if cause.decision is not None else ""
        out.data.put(f"{cause.version:>4}  ", style="bold")
        out.data.line(printable(f"{cause.event:<25}  {decided}{cause.because}"))


def _print_event(channel: Channel, cause: Cause, told: Sequence[Cause], happened: Mapping[int, Sequence[str]]) -> None:
    channel.put(f"version {cause.version}, {cause.event}", style="bold", end="\n")
    for what in happened.get(cause.version, ()):
        _field(channel, "happened", what)
    if cause.decision is not None:
        _print_decision(channel, cause.because, cause.decision)
        return
    _field(channel, "because", cause.because)
    if cause.decided_at is None:
        _field(channel, "decided", "nothing was decided here")
        return
    behind = told[cause.decided_at - 1].decision
    if behind is not None:
        _field(channel, "decided", f"at version {cause.decided_at}: {behind.rule} {behind.action}")
        _field(channel, "", f"because {behind.because}")
        _field(channel, "", behind.page)


def _print_decision(channel: Channel, because: str, told: Explanation) -> None:
    _field(channel, "decided", f"{told.rule} {told.action}")
    _field(channel, "because", because)
    _field(channel, "read", ", ".join(f"{name} {_fact(fact)}" for name, fact in told.read.items()))
    for number, passed in enumerate(told.passed):
        _field(channel, "passed by" if number == 0 else "", f"{passed.rule:<4}{passed.because}")
    _field(channel, "rule", f"{told.rule}: {told.when}; {told.page}" if told.when is not None else told.page)


def _fact(fact: object) -> str:
    return fact if isinstance(fact, str) else shown(fact)


def _field(channel: Channel, name: str, value: str) -> None:
    if value:
        channel.put(f"  {name:<11}", style="dim")
        channel.line(printable(value))


def _line(name: str, cause: Cause, happened: Mapping[int, Sequence[str]]) -> WhyLine:
    return WhyLine(
        log=name,
        version=cause.version,
        event=cause.event,
        because=cause.because,
        happened=tuple(happened.get(cause.version, ())),
        decided_at=cause.decided_at,
        decision=None if cause.decision is None else plain(cause.decision),
    )
