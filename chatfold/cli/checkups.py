"""``doctor`` of several logs: a line for each, how often each kind of incident was found, and an exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import typer

from chatfold.cli.guard import FAILED
from chatfold.cli.output import Out, printable
from chatfold.cli.progress import progress
from chatfold.cli.shapes import Examined
from chatfold.cli.sources import must_be_there
from chatfold.replaying.checkups import Checkup, check_up
from chatfold.replaying.logs import LogSource
from chatfold.replaying.many import each
from events.counting import counted


def run_checkups(out: Out, logs: Sequence[LogSource], *, strict: bool, jobs: int | None, json: bool) -> None:
    """Tell what went wrong in the newest turn of each of several logs; see the command ``doctor``.

    Raises:
        SourceNotFound: A log is not there.
        typer.Exit: With 1, where something went wrong in one of them (or happened at all, where that is strict), or one
            cannot be read or is not whole.
    """
    must_be_there(logs)
    faults = broken = 0
    happened = False
    kinds: Counter[str] = Counter()
    with progress(out, "looking at chats", len(logs)) as advance:
        for found in each(check_up, logs, jobs=jobs, done=advance):
            _tell(out, found, json=json)
            faults += found.fault
            broken += found.problem is not None
            happened = happened or bool(found.incidents)
            kinds.update(found.kinds)
    if not json:
        count = f"{counted(len(logs), 'log')} looked at"
        said = f"{count}; with a fault: {faults:,}, not whole or not to be read: {broken:,}"
        happenings = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common())
        out.note(f"{said}; logs by what happened: {happenings}" if happenings else said)
        if not logs:
            out.note("there are no chats: is this the database that you mean?")
    if faults or broken or (strict and happened):
        raise typer.Exit(FAILED)


def _tell(out: Out, found: Checkup, *, json: bool) -> None:
    worst = found.worst
    if json:
        out.data.json(_line(found))
        return
    bad = found.fault or found.problem is not None
    out.data.put(printable(f"{found.name}: "), style="bold red" if bad else "dim")
    told = [] if found.problem is None else [found.problem]
    if worst is not None:
        told.append(f"{worst.kind} at version {worst.version}: {worst.what}")
    out.data.line(printable("; ".join(told) or "nothing went wrong"))


def _line(found: Checkup) -> Examined:
    worst = found.worst
    return Examined(
        log=found.name,
        events=found.events,
        fault=found.fault,
        worst=None if worst is None else worst.kind,
        version=None if worst is None else worst.version,
        what=None if worst is None else worst.what,
        advice=None if worst is None else worst.advice,
        kinds=found.kinds,
        problem=found.problem,
    )
