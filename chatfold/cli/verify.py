"""``verify``: findings as they are found, a verdict for each log, and an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import typer

from chatfold.cli.guard import FAILED, Failure, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import existing_store, load_settings
from chatfold.cli.progress import progress
from chatfold.cli.shapes import Problem, Verified
from chatfold.cli.sources import all_named, must_be_there
from chatfold.logcheck import Verdict, verify_log
from chatfold.replaying.logs import LogSource, problem_of
from chatfold.sweep import count_chats
from chatfold.verification import verify_all, verify_chat
from chatstate.errors import ChatNotFound
from events.counting import counted
from events.errors import LogFileError
from store import open_store


def run_verify(
    out: Out, sources: list[str], *, everything: bool, json: bool, db: str | None, log_level: str | None
) -> None:
    """Verify; see the command.

    Raises:
        UsageProblem: Neither or both of sources and ``--all`` were given.
        SourceNotFound: A file is not there, or a folder has no log.
        typer.Exit: With 1, where something was found.
    """
    if bool(sources) is everything:
        raise UsageProblem("name log files or chats, or say --all, and only one of them")
    if everything:
        fine = asyncio.run(_run_all(out, json=json, db=db, log_level=log_level))
    else:
        logs = all_named(sources, db, log_level)
        must_be_there(logs)
        fine = _run_each(out, logs, json=json)
    if not fine:
        raise typer.Exit(FAILED)


def _run_each(out: Out, logs: Sequence[LogSource], *, json: bool) -> bool:
    bad = 0
    with progress(out, "verifying logs", len(logs)) as advance:
        for source in logs:
            try:
                verdict = _verdict(out, source, json=json)
            except (Failure, ChatNotFound) as error:
                if len(logs) == 1:
                    raise
                # The others are looked at all the same.
                bad += 1
                _print_unread(out, source.name, error, json=json)
            else:
                _print(out, verdict, json=json)
                bad += bool(verdict.findings)
            advance()
    if len(logs) > 1 and not json:
        out.note(f"{counted(len(logs), 'log')} verified, {bad} with problems")
    return not bad


async def _run_all(out: Out, *, json: bool, db: str | None, log_level: str | None) -> bool:
    checked, bad = 0, 0
    async with open_store(existing_store(load_settings(db, log_level))) as store:
        with progress(out, "verifying chats", await count_chats(store)) as advance:
            async for verdict in verify_all(store):
                _print(out, verdict, json=json)
                advance()
                checked += 1
                bad += bool(verdict.findings)
    if not json:
        note = f"{counted(checked, 'chat')} verified, {bad} with problems"
        out.note(note if checked else "there are no chats: is this the database that you mean?")
    return not bad


def _verdict(out: Out, source: LogSource, *, json: bool) -> Verdict:
    if source.store is not None:
        return asyncio.run(_stored(source.store, source.where))
    try:
        log = source.read()
    except LogFileError as error:
        if json:
            problem = f"line {error.line}: {error.why}"
            out.data.json(Problem(chat=source.name, version=None, check="form", problem=problem))
        # For this command it is a finding, and no wrong argument.
        raise Failure(str(error)) from None
    return verify_log(log.name, log.events, log.blobs)


def _print_unread(out: Out, name: str, error: Failure | ChatNotFound, *, json: bool) -> None:
    """Say why one of several logs could not be looked at; of a file JSON has said it."""
    why = error.reason if isinstance(error, ChatNotFound) else problem_of(name, error)
    if not json:
        out.data.put(printable(f"{name}: "), style="bold red")
        out.data.line(printable(why))
    elif isinstance(error, ChatNotFound):
        out.data.json(Problem(chat=name, version=None, check="form", problem=why))


async def _stored(url: str, chat: str) -> Verdict:
    async with open_store(url) as store:
        return await verify_chat(store, chat)


def _print(out: Out, verdict: Verdict, *, json: bool) -> None:
    for found in verdict.findings:
        if json:
            out.data.json(
                Problem(chat=found.chat, version=found.version, check=found.check, problem=printable(found.problem))
            )
            continue
        where = f"version {found.version}" if found.version is not None else "header"
        out.data.put(printable(f"{found.chat}, {where}: "), style="bold red")
        out.data.line(printable(f"{found.problem} ({found.check})"))
    count = len(verdict.findings)
    if json:
        out.data.json(Verified(chat=verdict.chat, version=verdict.version, problems=count, digest=verdict.digest.hex()))
    else:
        said = counted(count, "problem") if count else "ok"
        events = counted(verdict.version, "event")
        proof = "" if count else f", {verdict.digest.hex()[:16]}"  # of a log that is not sound it would prove nothing
        out.data.line(printable(f"{verdict.chat}: {said}, {events}{proof}"))
