"""``rerun``: logs through today's engine, one line of verdict for each, and where it parts from its log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import typer
from msgspec import Struct

from chatfold.cli.agents import load_agents
from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.progress import progress
from chatfold.cli.shapes import EventLine, RerunLine, SectionLine
from chatfold.cli.sources import all_named
from chatfold.cli.timeline import line_of, print_timeline
from chatfold.replaying.logs import LogSource, SourceNotFound, problem_of
from chatfold.replaying.many import each
from chatfold.rerunning.kept import KeptFileError
from chatfold.rerunning.run import RerunReport, rerun_events
from chatfold.rerunning.sections import (
    Section,
    SectionChange,
    Sections,
    checked_sections,
    read_sections,
    write_sections,
)
from chatfold.rerunning.then import Then, then_beside
from chatfold.rerunning.words import grouped, section_said, section_shown, strangers_said, verdict_of
from chatstate.errors import ChatNotFound, Refusal
from events.counting import counted
from events.diff import MISSING, Change, plain
from events.envelope import Recorded
from events.errors import EventsError, InvalidValue
from store.errors import StoreError

_BEFORE: Final = 3
"""Events that are shown before the one where a rerun parts from its log."""


class _Wanted(Struct, frozen=True, kw_only=True):
    """What is to be done with each log; it is handed to other processes."""

    agents: tuple[str, ...]
    sections: str | None
    ignored: frozenset[Section]
    show: bool
    alone: bool
    """Whether it is the only log: that it is not there is a wrong command line then, as with any other command."""


class _Done(Struct, frozen=True, kw_only=True):
    """What is to be said of a log, and what today's requests say.

    Whose agents were not given knows it, so that strangers are said only where something differs; ``contents`` always.
    """

    line: RerunLine
    told: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    today: bytes = b""


def run_rerun(
    out: Out,
    sources: Sequence[str],
    *,
    agents: Sequence[str],
    show: bool,
    sections: str | None,
    keep_sections: str | None,
    ignored: str | None,
    jobs: int | None,
    json: bool,
    db: str | None,
    log_level: str | None,
) -> None:
    """Run logs again; see the command.

    Raises:
        UsageProblem: An option says what cannot be done.
        SourceNotFound: The only log is not there; or a folder has none.
        ChatNotFound: The only log is that of a chat that there is not.
        typer.Exit: With 1, where something came otherwise.
    """
    if keep_sections is not None and not agents:
        raise UsageProblem("--keep-sections keeps what agents say: name them with --agents MODULE:NAME")
    if agents:
        load_agents(agents)  # what is wrong with them is said once, and before anything is done
    _given(sections)  # so is what is wrong with that file
    named = all_named(list(sources), db, log_level)
    wanted = _Wanted(
        agents=tuple(agents), sections=sections, ignored=_ignored(ignored), show=show, alone=len(named) == 1
    )
    kept = Sections()
    again = 0
    work = partial(_work, wanted=wanted)
    with progress(out, "running logs again", len(named)) as advance:
        for done in map(work, named) if wanted.alone else each(work, named, jobs=jobs, done=advance):
            _print(out, done, json=json)
            again += done.line.same
            if done.today:
                kept.update(msgspec.json.decode(done.today, type=Sections))
    if keep_sections is not None:
        write_sections(Path(keep_sections), kept)
        out.note(f"what today's requests say is kept in {keep_sections}")
    if len(named) > 1 and not json:
        out.note(f"{again} of {counted(len(named), 'log')} came out the same")
    if again < len(named):
        raise typer.Exit(FAILED)


def _ignored(given: str | None) -> frozenset[Section]:
    try:
        return checked_sections([name.strip() for name in given.split(",")] if given is not None else [], "$.names")
    except InvalidValue as error:
        raise UsageProblem(f"--ignore-sections: {error.why}") from None


def _work(source: LogSource, *, wanted: _Wanted) -> _Done:
    """Run one log again. What is wrong with it is told, so that the others are run all the same."""
    try:
        log = source.read()
        if (fault := log.fault()) is not None:
            return _not_run(source, f"it {fault}; `chatfold verify` says more")
        recorded = log.recorded()
        kept = _kept(source, wanted.sections)
    except (SourceNotFound, ChatNotFound) as error:
        if wanted.alone:
            raise
        return _not_run(source, problem_of(source.name, error))
    except (EventsError, KeptFileError, Refusal, StoreError, OSError) as error:
        return _not_run(source, problem_of(source.name, error))
    agents = load_agents(wanted.agents) if wanted.agents else ()
    report = rerun_events(log.name, recorded, agents, redacted=log.redacted)
    changed = tuple(change for change in report.sections if change.section not in wanted.ignored)
    report = msgspec.structs.replace(report, sections=changed)
    then = kept.texts(recorded, redacted=log.redacted) if changed else kept.sections
    lines = tuple(_section_lines(changed, then, report.today, show=wanted.show))
    unsaid = strangers_said(report, wanted.ignored) if wanted.agents else None
    return _Done(
        line=_line(report, recorded, lines, unsaid),
        told=tuple(section_said(change, count, then, report.today) for change, count in grouped(changed)),
        contents=report.contents,
        today=msgspec.json.encode(report.today) if wanted.agents else b"",
    )


def _given(sections: str | None) -> Sections | None:
    """Return the sections of the file that was named.

    Raises:
        UsageProblem: It is none, or cannot be read.
    """
    try:
        return None if sections is None else read_sections(Path(sections))
    except KeptFileError as error:
        raise UsageProblem(f"--sections: {error}") from None


def _kept(source: LogSource, sections: str | None) -> Then:
    """Return what was kept of the texts of then: what was named, and what lies beside a file.

    Raises:
        KeptFileError: What lies there is none, or cannot be read.
    """
    given = _given(sections)
    if source.place == "file":
        return then_beside(source.where, given)
    return Then() if given is None else Then(sections=given)


def _not_run(source: LogSource, why: str) -> _Done:
    return _Done(line=RerunLine(log=source.name, same=False, problem=printable(why)))


def _line(
    report: RerunReport, recorded: Sequence[Recorded], sections: tuple[SectionLine, ...], unsaid: str | None
) -> RerunLine:
    difference = report.difference
    line = RerunLine(
        log=report.log,
        same=report.same and not sections and unsaid is None,
        events=report.events,
        again=report.again,
        said="; ".join(filter(None, (verdict_of(report), unsaid))),
        sections=sections,
        not_compared=report.not_compared,
        problem=None if report.unsupported is None else f"it cannot be run again: {report.unsupported}",
    )
    if difference is None:
        return line
    first = max(0, difference.version - 1 - _BEFORE)
    return msgspec.structs.replace(
        line,
        version=difference.version,
        difference=difference.kind,
        rule=difference.rule,
        before=tuple(line_of(event) for event in recorded[first : difference.version - 1]),
        then=None if difference.want is None else line_of(recorded[difference.version - 1]),
        now=None if difference.got is None else line_of(difference.got),
        changes=_plain(difference.changes),
        said="; ".join(filter(None, (line.said, difference.said))),
    )


def _section_lines(
    sections: Sequence[SectionChange], then: Sections, today: Sections, *, show: bool
) -> Iterator[SectionLine]:
    for change, count in grouped(sections):
        yield SectionLine(
            version=change.version,
            section=change.section,
            then=change.then,
            now=change.now,
            requests=count,
            changes=_plain(change.changes),
            shown=tuple(section_shown(change, then, today)) if show else (),
        )


def _plain(changes: Sequence[Change]) -> tuple[Any, ...]:
    return tuple(plain(change) for change in changes)


def _print(out: Out, done: _Done, *, json: bool) -> None:
    line = done.line
    if json:
        out.data.json(line)
        return
    said = line.said if line.problem is None else line.problem
    out.data.put(printable(f"{line.log}: "), style="" if line.same else "bold red")
    out.data.line(printable(said))
    _print_difference(out, line)
    for text, section in zip(done.told, line.sections, strict=True):
        out.data.line(printable(f"  {text}"))
        for shown in section.shown:
            out.data.line(printable(f"    {shown}"))
    for not_compared in line.not_compared if not line.same else done.contents:
        out.note(printable(f"  not compared: {not_compared}"))


def _print_difference(out: Out, line: RerunLine) -> None:
    if line.version is None:
        return
    print_timeline(out.data, line.before)
    for when, event in (("then", line.then), ("now", line.now)):
        _print_event(out, when, event)
    for change in line.changes:
        before, after = _said(change["before"]), _said(change["after"])
        if before == after:  # contents of one size
            after = f"another one of {after}"
        out.data.line(printable(f"      {change['path']}: {before} -> {after}"))


def _print_event(out: Out, when: str, event: EventLine | None) -> None:
    out.data.put(f"{when}:", style="bold", end="\n")
    if event is None:
        out.data.line("      nothing")
    else:
        print_timeline(out.data, [event])


def _said(value: object) -> str:
    return MISSING.value if value == plain(MISSING) else msgspec.json.encode(value).decode()
