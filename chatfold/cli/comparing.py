"""``diff`` and ``bisect``: where two logs part, what changed between two versions, where a condition first holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import typer
from msgspec.structs import asdict

from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Channel, Out, printable
from chatfold.cli.shapes import ChangeLine, Compared, FirstWhere
from chatfold.cli.sources import must_have, named, opened
from chatfold.cli.timeline import line_of, print_timeline, time_of
from chatfold.replaying.alignment import Comparison, Moved, align, moves
from chatfold.replaying.bisect import first_where, never_said
from chatfold.replaying.changed import state_changes
from chatfold.replaying.conditions import ConditionError, OpenWord, parse_condition
from chatfold.replaying.families import Family, families_of
from chatfold.replaying.logs import STDIN, Log
from chatstate.classify import classify
from events.diff import Change, plain
from events.replay import state_at
from generation.nearest import meant


def run_logs_diff(
    out: Out, sources: tuple[str, str], *, context: int, json: bool, db: str | None, log_level: str | None
) -> None:
    """Compare two logs; see the command ``diff``.

    Raises:
        UsageProblem: Both are stdin.
        typer.Exit: With 1, where they part, or one of them is not as it was written.
    """
    if sources == (STDIN, STDIN):
        raise UsageProblem("- (stdin) is one log; name another one beside it")
    with opened(out, sources[0], db, log_level) as one, opened(out, sources[1], db, log_level) as other:
        logs = (one, other)
        stores = filter(None, (named(source, db, log_level).store for source in sources))
        families = families_of(logs, next(stores, None))
        left, right = (moves(family.log, family.origins) for family in families)
        found = align(left, right, context=context)
        if json:
            out.data.json(_compared(found, families))
        else:
            for log, family in zip(logs, families, strict=True):
                _tell_origins(out, log, family)
            _print_comparison(out.data, found, logs)
    if found.parts:
        raise typer.Exit(FAILED)


def _compared(found: Comparison, families: Sequence[Family]) -> Compared:
    one, other = (tuple(_move(each) for each in side) for side in found.then)
    last = None if found.last is None else (found.last[0].version, found.last[1].version)
    origins = tuple(tuple(asdict(each) for each in family.ancestors) for family in families)
    return Compared(same=found.same, last=last, parts=found.parts, then=(one, other), origins=(origins[0], origins[1]))


def _move(moved: Moved) -> dict[str, object]:
    return {"version": moved.recorded.version, **asdict(moved.move), "origin": moved.origin}


def _tell_origins(out: Out, log: Log, family: Family) -> None:
    """Say where a fork comes from, and where that is not known: then its copied messages stand for its beginning."""
    fork = log.name
    for each in family.ancestors:
        out.note(printable(f"{fork} is a fork of {each.chat}, from version {each.version}"))
        if not each.known:
            out.note(printable(f"  the log of {each.chat} is not at hand up to there: {_FROM_THE_COPY}"))
        fork = each.chat


_FROM_THE_COPY: Final = (
    "the fork is compared from its copying on; name that log as the other one, or chats of the store that has them all"
)


def _print_comparison(channel: Channel, found: Comparison, logs: tuple[Log, Log]) -> None:
    if not found.parts:
        channel.line(f"the same: {found.same} moves")
        return
    if found.last is None:
        channel.line("they part at once")
    else:
        one, other = (moved.version for moved in found.last)
        channel.line(f"the same for {found.same} moves, up to version {one} and {other}; then they part:")
    for log, side in zip(logs, found.then, strict=True):
        channel.line()
        channel.put(printable(log.name), style="bold", end="\n")
        for moved in side:
            channel.put(f"{moved.recorded.version:>6}  ", style="bold")
            before = "" if moved.origin is None else f", in {moved.origin}"
            channel.line(printable(f"{moved.move}{before}"))
        if not side:
            channel.line("        (ends here)")


def run_versions_diff(
    out: Out, source: str, at: int, to: int | None, *, json: bool, db: str | None, log_level: str | None
) -> None:
    """Compare two versions of a log; see the command ``diff``.

    Args:
        out: Where to.
        source: The log.
        at: The first version.
        to: The second one; None for the last.
        json: As lines of JSON.
        db: Which store.
        log_level: What is logged.

    Raises:
        UsageProblem: The log has no such version.
        typer.Exit: With 1, where they differ, or the log is not as it was written.
    """
    with opened(out, source, db, log_level) as log:
        last = len(log.events) if to is None else to
        for version in (at, last):
            must_have(log.name, version, len(log.events))
        recorded = log.recorded()
        before, after = state_at(recorded, at), state_at(recorded, last)
        found = list(state_changes(before, after))
        if json:
            for change in found:
                out.data.json(ChangeLine(path=change.path, before=plain(change.before), after=plain(change.after)))
        else:
            states = (str(classify(state.control)) for state in (before, after))
            out.note(f"version {at} ({next(states)}) and version {last} ({next(states)})")
            _print_changes(out.data, found)
    if found:
        raise typer.Exit(FAILED)


def _print_changes(channel: Channel, found: Sequence[Change]) -> None:
    for change in found:
        channel.line(printable(str(change)))
    if not found:
        channel.line("nothing differs")


def _never(asked: OpenWord, words: Sequence[str]) -> str:
    """Say that a log never has a word that a condition asks for, and which it has."""
    if not words:
        return f"no event of it has {'an' if asked.name[:1] in _VOWELS else 'a'} {asked.name}"
    left = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    known = f"there {'is' if len(words) == 1 else 'are'} {', '.join(words[:SHOWN])}{left}"
    return f"{asked.name} is never {asked.word} there; {known}{meant(asked.word, words)}"


_VOWELS: Final = tuple("aeio")
SHOWN: Final = 20
"""Words of a log that are told, where it has not the one that was asked for."""


def run_bisect(out: Out, source: str, when: str, *, json: bool, db: str | None, log_level: str | None) -> None:
    """Find the first version at which a condition holds; see the command ``bisect``.

    Raises:
        UsageProblem: The condition cannot be read.
        typer.Exit: With 1, where it never holds, or the log is not as it was written.
    """
    try:
        condition = parse_condition(when)
    except ConditionError as error:
        raise UsageProblem(f"--when: {error}") from None
    with opened(out, source, db, log_level) as log:
        found = first_where(log.recorded(), condition)
        line = None
        if found is not None:
            states = (str(classify(state.control)) for state in (found.before, found.after))
            line = line_of(found.recorded, before=next(states), after=next(states))
        if json:
            version = None if found is None else found.recorded.version
            out.data.json(FirstWhere(condition=when, version=version, event=line, versions=len(log.events)))
        elif line is None:
            out.note(f"{printable(log.name)}: it holds at no version from 1 to {len(log.events)}, the last")
            for asked, words in never_said(log.recorded(), condition):
                out.note(printable(_never(asked, words)))
        else:
            out.note(f"first at version {line.version} of {len(log.events)}, {time_of(line.recorded_at)}")
            print_timeline(out.data, [line])
    if found is None:
        raise typer.Exit(FAILED)
