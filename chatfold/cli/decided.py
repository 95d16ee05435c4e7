"""``replay --decide``: the decisions of logs taken again, what drifted, and an exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import typer

from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.progress import progress
from chatfold.cli.shapes import DriftLine, ReplayedLog
from chatfold.cli.sources import all_named, must_be_there
from chatfold.replaying.checking import CheckedLog, check_decisions, check_source
from chatfold.replaying.decisions import DRIFTS, Drift, WhatIfProblem
from chatfold.replaying.logs import LogSource
from chatfold.replaying.many import each
from chatfold.replaying.whatif import WhatIfNames
from chatfold.replaying.words import page_of, why
from events.counting import counted
from events.diff import plain
from events.records import Decision

_SAID: Final = ("$.decision.rule", "$.decision.action", "$.decision.passed")
"""What the lines of two different rules say already."""


@dataclass(frozen=True)
class Asked:
    """What was asked for on the command line.

    Attributes:
        sources: The logs.
        everything: All drifts of each log and not the first alone.
        names: What would have been decided otherwise.
        jobs: Processes at once; None for as many as there are cores.
        json: Whether to print JSON.
    """

    sources: Sequence[str]
    everything: bool
    names: WhatIfNames
    jobs: int | None
    json: bool

    @property
    def what_if(self) -> bool:
        """Whether something else than today's rules decides."""
        return self.names != WhatIfNames()


def run_decide(out: Out, asked: Asked, *, db: str | None, log_level: str | None) -> None:
    """Take decisions again; see the command.

    Raises:
        UsageProblem: What was named to decide with is not there, or is not what it has to be.
        SourceNotFound: A log is not there.
        typer.Exit: With 1, where something was found.
    """
    try:
        asked.names.load()  # before any log is read, and where it can be said as what it is
    except WhatIfProblem as error:
        raise UsageProblem(str(error)) from error
    logs = all_named(list(asked.sources), db, log_level)
    decisions = drifted = broken = undecided = 0
    with progress(out, "taking decisions again", len(logs)) as advance:
        for checked in _checked(logs, asked, advance):
            _print(out, checked, asked, alone=len(logs) == 1)
            if checked.unread and not asked.json:
                out.note(printable(f"{checked.name}: {_no_effect(checked.unread)}"))
            decisions += checked.decisions
            drifted += bool(checked.drifts)
            broken += not checked.sound and not (checked.undecided and checked.altered is None)
            undecided += checked.undecided
    if len(logs) > 1 and not asked.json:
        said = f"{counted(decisions, 'decision')} of {counted(len(logs), 'log')} taken again"
        failed = f", where what was given to decide with failed: {undecided:,}" if undecided else ""
        out.note(f"{said}; logs that drifted: {drifted:,}, altered or not to be read: {broken:,}{failed}")
    if drifted and asked.what_if and asked.everything and not asked.json:
        out.note("after its first drift, a log tells what happened, and not what would have happened then")
    if drifted or broken or undecided:
        raise typer.Exit(FAILED)


def _checked(logs: Sequence[LogSource], asked: Asked, advance: Callable[[], None]) -> Iterator[CheckedLog]:
    if len(logs) == 1:
        # Here, so that a log that is not there is a wrong command line, as with any other command.
        yield check_decisions(logs[0].read(), asked.names, everything=asked.everything)
        return
    must_be_there(logs)
    work = partial(check_source, names=asked.names, everything=asked.everything)
    yield from each(work, logs, jobs=asked.jobs, done=advance)


def _print(out: Out, checked: CheckedLog, asked: Asked, *, alone: bool) -> None:
    if asked.json:
        for drift in checked.drifts:
            out.data.json(_drift_line(checked.name, drift))
        out.data.json(_log_line(checked))
        return
    for drift in checked.drifts:
        _print_drift(out, checked.name, drift, now="otherwise" if asked.what_if else "today")
    for problem in filter(None, (checked.altered, checked.problem)):
        out.data.put(printable(f"{checked.name}: "), style="bold red")
        out.data.line(printable(problem))
    if checked.drifts or (alone and checked.problem is None):
        out.data.line(printable(f"{checked.name}: {_verdict(checked, everything=asked.everything)}"))


def _no_effect(unread: Sequence[str]) -> str:
    fields = ", ".join(unread)
    return f"no decision of this log reads {fields}, which the policy changes: no drift says nothing of it"


def _verdict(checked: CheckedLog, *, everything: bool) -> str:
    if not checked.drifts:
        return f"{counted(checked.decisions, 'decision')} taken again, no drift"
    if not everything:
        return "this is the first drift; --all shows all of them"
    return f"{counted(checked.decisions, 'decision')} taken again, {len(checked.drifts)} drifted"


def _print_drift(out: Out, name: str, drift: Drift, *, now: str) -> None:
    out.data.put(printable(f"{name}, version {drift.version}: "), style="bold red")
    out.data.line(DRIFTS[drift.kind])
    for called, decision in (("recorded", drift.then), (now, drift.now)):
        _print_decision(out, called, decision)
    for change in drift.changes:
        if drift.kind != "rule" or not change.path.startswith(_SAID):
            out.data.line(printable(f"  {change}"))


def _print_decision(out: Out, called: str, decision: Decision | None) -> None:
    out.data.put(f"  {called}: ", style="dim")
    if decision is None:
        out.data.line("nothing")
        return
    said = f"{decision.rule} {decision.action}, because {why(decision)} ({page_of(decision.rule)})"
    out.data.line(printable(said))


def _drift_line(name: str, drift: Drift) -> DriftLine:
    return DriftLine(
        log=name,
        version=drift.version,
        drift=drift.kind,
        meaning=DRIFTS[drift.kind],
        then=_decision(drift.then),
        now=_decision(drift.now),
        changes=tuple(plain(change) for change in drift.changes),
    )


def _decision(decision: Decision | None) -> dict[str, Any] | None:
    return None if decision is None else {**plain(decision), "because": why(decision)}


def _log_line(checked: CheckedLog) -> ReplayedLog:
    return ReplayedLog(
        log=checked.name,
        events=checked.events,
        decisions=checked.decisions,
        drifts=len(checked.drifts),
        altered=checked.altered,
        problem=checked.problem,
        unread=checked.unread,
    )
