"""``corpus``: the gate's findings, what is covered, adding a log, and writing expectations anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import typer

from chatfold import __version__
from chatfold.cli.agents import load_agents
from chatfold.cli.guard import FAILED, Failure, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.progress import progress
from chatfold.cli.shapes import AddedLog, CorpusLine, CoverageLine, RefoldedLog
from chatfold.cli.sources import all_named
from chatfold.corpus.adding import LogThere, add_log, refold
from chatfold.corpus.coverage import NOTHING, Coverage, coverage_of, possible
from chatfold.corpus.gate import CHECKS, Check, CheckedLog, check_corpus, logs_of
from chatfold.corpus.names import UnfitName, checked_name, name_of
from chatfold.corpus.picture import coverage_svg
from chatfold.corpus.unwritten import KINDS, SAID
from chatfold.replaying.logs import LogSource
from chatfold.rerunning.kept import KeptFileError
from events.counting import counted
from events.diff import plain
from events.errors import InvalidValue
from events.ids import ChatId
from events.logfile import header_of, write_log

_NAMED: Final = 8


def run_check(out: Out, folder: Path, *, only: str | None, jobs: int | None, json: bool) -> None:
    """Check a corpus; see the command.

    Raises:
        UsageProblem: There is no such check.
        SourceNotFound: The folder is not there, or has no log.
        typer.Exit: With 1, where something is wrong.
    """
    checks = _checks(only)
    logs = events = wrong = 0
    with progress(out, "checking logs", len(logs_of(folder))) as advance:
        for checked in check_corpus(folder, checks=checks, jobs=jobs, done=advance):
            logs, events, wrong = logs + 1, events + checked.events, wrong + (checked.finding is not None)
            if json:
                out.data.json(_line(checked))
            elif checked.finding is not None:
                out.data.line(printable(str(checked.finding)))
    if not json:
        out.note(f"{counted(logs, 'log')} with {counted(events, 'event')} checked, {wrong:,} with findings")
    if wrong:
        raise typer.Exit(FAILED)


def _checks(only: str | None) -> tuple[Check, ...]:
    if only is None:
        return CHECKS
    wanted = tuple(name.strip() for name in only.split(","))
    if strange := [name for name in wanted if name not in CHECKS]:
        raise UsageProblem(f"there is no check {strange[0]!r}: the checks are {', '.join(CHECKS)}")
    return cast("tuple[Check, ...]", wanted)


def _line(checked: CheckedLog) -> CorpusLine:
    finding = checked.finding
    if finding is None:
        return CorpusLine(log=checked.log, fine=True, events=checked.events, unsupported=checked.unsupported)
    return CorpusLine(
        log=checked.log,
        fine=False,
        events=checked.events,
        check=finding.check,
        version=finding.version,
        rule=finding.rule,
        problem=finding.problem,
        changes=tuple(plain(change) for change in finding.changes),
        unsupported=checked.unsupported,
    )


def run_coverage(out: Out, folder: Path, *, svg: Path | None, missing: bool, json: bool) -> None:
    """Say what a corpus covers; see the command.

    Raises:
        SourceNotFound: The folder is not there, or has no log.
        EventsError: A log cannot be read.
    """
    total = NOTHING
    sources = logs_of(folder)
    with progress(out, "reading logs", len(sources)) as advance:
        for source in sources:
            try:
                total += coverage_of(source.read().recorded())
            except InvalidValue as error:  # events are missing
                raise UsageProblem(f"{source.name}: {error.why}; `chatfold corpus check` says more") from None
            advance()
    for kind in KINDS:
        lacking = total.missing(kind)
        known = len(possible()[kind])
        if json:
            line = CoverageLine(
                of=kind, possible=known, covered=known - len(lacking), seen=dict(total.of(kind)), missing=tuple(lacking)
            )
            out.data.json(line)
        else:
            out.data.line(f"{known - len(lacking):>4} of {known:>3}  {SAID[kind]}")
            _name(out, lacking, everything=missing)
    if svg is not None:
        _draw(svg, total)


def _name(out: Out, lacking: list[str], *, everything: bool) -> None:
    shown = lacking if everything else lacking[:_NAMED]
    for name in shown:
        out.data.line(f"             never: {name}")
    if len(lacking) > len(shown):
        out.data.line(f"             and {len(lacking) - len(shown)} more (--missing)")


def _draw(svg: Path, coverage: Coverage) -> None:
    try:
        svg.write_text(coverage_svg(coverage), encoding="utf-8")
    except OSError as error:
        raise Failure(f"{svg} cannot be written: {error.strerror}") from error


def run_add(
    out: Out,
    source: str,
    folder: Path,
    *,
    note: str,
    name: str | None,
    agents: Sequence[str] | None,
    db: str | None,
    json: bool,
    log_level: str | None,
) -> None:
    """Add a log to a corpus; see the command.

    Raises:
        UsageProblem: The folder is none, or there is a log of that name, or none can have it; or no agents are where
            they are named.
        SourceNotFound: The log is not there.
        EventsError: It cannot be read, or was altered.
    """
    if not folder.is_dir():
        raise UsageProblem(f"{folder} is no folder: make it first")
    (found,) = all_named([source], db, log_level)
    called = _called(found, name)
    log = found.read()
    log.recorded()  # where an event cannot be read, it says in which line of which file
    header = header_of(ChatId(log.chat), log.events, release=__version__, blobs=log.blobs, redacted=log.mark)
    said = load_agents(agents) if agents else ()
    data = b"".join(write_log(header, log.events, log.blobs))
    try:
        file, strangers = add_log(data, folder, called, note, said)
    except (LogThere, KeptFileError) as error:
        raise UsageProblem(str(error)) from error
    if json:
        out.data.json(AddedLog(log=str(file), strangers=strangers))
    else:
        out.note(f"added {file}, with its fold expectations and its note")
    if said and strangers:
        names = printable(", ".join(strangers))
        out.warn(
            f"what {names} said is not kept: none of the agents given has the texts and tools that the log records"
        )


def _called(source: LogSource, name: str | None) -> str:
    called = name_of(source) if name is None else name
    if called is None:
        raise UsageProblem("what comes from stdin has no name: give --name")
    try:
        return checked_name(called)
    except UnfitName as error:
        raise UsageProblem(f"{error}; give {'another' if name is not None else 'it one with'} --name") from error


def run_refold(out: Out, folder: Path, *, json: bool) -> None:
    """Write the fold expectations of a corpus anew; see the command.

    Raises:
        SourceNotFound: The folder is not there, or has no log.
        EventsError: A log cannot be read, or was altered.
        Failure: What was kept of agents cannot be read.
    """
    sources, others = logs_of(folder), 0
    with progress(out, "folding logs", len(sources)) as advance:
        for source in sources:
            try:
                changed = refold(source)
            except KeptFileError as error:
                raise Failure(str(error)) from error
            others += changed
            advance()
            if json:
                out.data.json(RefoldedLog(log=source.name, changed=changed))
    if not json:
        out.note(
            f"{others:,} of {len(sources):,} fold expectations {'is another' if others == 1 else 'are others'} now"
        )
