"""``record``: logs from wherever they are, picked, redacted, checked and written; what is left in clear is told."""

from __future__ import annotations

import re
import shlex
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import typer
from msgspec import Struct

from chatfold.cli.guard import FAILED, Failure, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.progress import progress
from chatfold.cli.shapes import RecordedLine, UnusedRenameLine
from chatfold.cli.sources import all_chats, all_named
from chatfold.randomness import RANDOM
from chatfold.redacting.errors import KeyTooShort, RedactionRulesError
from chatfold.redacting.facts import Kind
from chatfold.redacting.picking import TRIGGERS, Picking
from chatfold.redacting.record import Order, Recording, record_log
from chatfold.redacting.rules import RedactionRules, read_redaction_rules
from chatfold.redacting.streams import KEY_BYTES, Streams
from chatfold.redacting.unused import unused_renames
from chatfold.replaying.many import each
from events.counting import counted

_AGO: Final = re.compile(r"([1-9][0-9]{0,5})([mhd])")
_SECONDS: Final = {"m": 60, "h": 3600, "d": 86400}
_RANDOM_KEY: Final = 32
_COUNTED: Final[frozenset[Kind]] = frozenset({"digests", "own"})
"""Kinds of which people are told how many there are: nobody reads them, and there are many."""


class Asked(Struct, frozen=True, kw_only=True):
    """What was typed, beside the logs: see the command."""

    everything: bool
    errors: bool
    drift: bool
    covers: Sequence[str]
    since: str | None
    redact: Path | None
    key: Path | None
    output: Path
    jobs: int | None


def run_record(
    out: Out, sources: list[str], asked: Asked, *, json: bool, db: str | None, log_level: str | None
) -> None:
    """Record; see the command.

    Raises:
        UsageProblem: No log is named, or a rule, a filter or the key is not what it must be.
        Failure: The folder cannot be made.
        typer.Exit: With 1, where a log could not be recorded.
    """
    order = _order(out, asked)
    wanted = bool(asked.everything or order.picking.asks)
    if not sources and not wanted:
        raise UsageProblem("name chats or log files, or say --all or what to look for (--errors, --drift, ...)")
    if sources and asked.everything:
        raise UsageProblem("name chats or log files, or say --all, and only one of them")
    logs = all_named(sources, db, log_level) if sources else all_chats(db, log_level)
    told: list[Recording] = []
    with progress(out, "recording chats", len(logs)) as advance:
        for recording in each(partial(record_log, order=order), logs, jobs=asked.jobs, done=advance):
            if recording.picked:
                told.append(recording)
                _tell(out, recording, json=json)
    if not json:
        _sum_up(out, told, len(logs))
    _tell_unused(out, order.rules, told, json=json)
    if any(recording.failed for recording in told):
        raise typer.Exit(FAILED)


def _order(out: Out, asked: Asked) -> Order:
    unknown = [name for name in asked.covers if name not in TRIGGERS]
    if unknown:
        raise UsageProblem(f"--covers {unknown[0]}: there is no such transition; there are {', '.join(TRIGGERS)}")
    picking = Picking(
        errors=asked.errors,
        drift=asked.drift,
        covers=tuple(asked.covers),
        since=None if asked.since is None else since_when(asked.since, time.time()),
    )
    rules = RedactionRules() if asked.redact is None else _rules(asked.redact)
    key = _key(out, asked.key)
    try:
        asked.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{asked.output}: {error.strerror}") from error
    return Order(rules=rules, key=key, folder=str(asked.output), picking=picking)


def since_when(text: str, now: float) -> int:
    """Return the time that ``--since`` means, in microseconds UTC.

    Args:
        text: A date or a time in ISO form (UTC where it names no zone), or how long ago: ``30m``, ``12h``, ``7d``.
        now: Seconds since 1970.

    Raises:
        UsageProblem: It is neither.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return round((now - int(ago[1]) * _SECONDS[ago[2]]) * 1_000_000)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        why = "must be a date or time (2026-11-28, 2026-11-28T12:00) or how long ago (30m, 12h, 7d)"
        raise UsageProblem(f"--since {text}: {why}") from None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000)


def _rules(path: Path) -> RedactionRules:
    try:
        return read_redaction_rules(path.read_text())
    except RedactionRulesError as error:
        raise UsageProblem(f"{path}: {error}") from error
    except UnicodeDecodeError:
        raise UsageProblem(f"{path}: not UTF-8, as TOML is") from None
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}") from error


def _key(out: Out, path: Path | None) -> bytes:
    if path is None:
        out.note("no --key: made-up names and words will be others the next time")
        return RANDOM.take(_RANDOM_KEY)
    try:
        key = path.read_bytes().rstrip(b"\r\n")
        Streams(key)
    except KeyTooShort as error:
        make = shlex.join(["openssl", "rand", "-hex", "-out", str(path), str(2 * KEY_BYTES)])
        raise UsageProblem(f"{path}: {error}; `{make}` makes one") from error
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror}") from error
    return key


def _tell(out: Out, recording: Recording, *, json: bool) -> None:
    if json:
        out.data.json(_line(recording))
    elif recording.failed is not None:
        out.data.put(printable(f"{recording.source}: "), style="bold red")
        out.data.line(printable(recording.failed))
    elif (checked := recording.checked) is not None:
        kept = f", {checked.unchanged} of them without anything to replace" if checked.unchanged else ""
        decisions = counted(checked.decisions, "decision is as it was", "decisions are as they were")
        what = (
            f"{counted(recording.events, 'event')}, {decisions}, {counted(checked.contents, 'content')} replaced{kept}"
        )
        out.data.line(printable(f"{recording.source} -> {recording.file}: {what}"))


def _line(recording: Recording) -> RecordedLine:
    checked = recording.checked
    return RecordedLine(
        source=recording.source,
        file=recording.file,
        chat=recording.chat,
        version=recording.events,
        decisions=checked.decisions if checked else 0,
        contents=checked.contents if checked else 0,
        unchanged=checked.unchanged if checked else 0,
        clear=tuple(msgspec.to_builtins(clear) for clear in checked.clear) if checked else (),
        problems=checked.problems if checked else (),
        failed=recording.failed,
    )


def _sum_up(out: Out, told: Sequence[Recording], looked_at: int) -> None:
    """Say what facts have in clear, all logs together."""
    clear: dict[Kind, set[str]] = defaultdict(set)
    for recording in told:
        if recording.file is not None and recording.checked is not None:
            for each_clear in recording.checked.clear:
                clear[each_clear.kind].add(each_clear.text)
    written = sum(recording.file is not None for recording in told)
    out.note(f"{written} of {counted(looked_at, 'log')} recorded")
    if written:
        out.data.line("left in clear:")
    for kind, texts in clear.items():
        out.data.line(f"  {kind}: {_shown(kind, texts)}")


def _tell_unused(out: Out, rules: RedactionRules, told: Sequence[Recording], *, json: bool) -> None:
    """Say which renames did nothing: a misspelt one leaves the name that was meant in clear."""
    checked = [recording.checked.names for recording in told if recording.checked is not None]
    for unused in unused_renames(rules, checked) if checked else ():
        if json:
            out.data.json(UnusedRenameLine(rule=unused.rule, problem=unused.problem))
        else:
            out.warn(f"{unused.rule}: {unused.problem}")


def _shown(kind: Kind, texts: Iterable[str]) -> str:
    ordered = sorted(texts)
    return f"{len(ordered)}, see --json" if kind in _COUNTED else ", ".join(printable(text) for text in ordered)
