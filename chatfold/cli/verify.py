"""``verify``: findings as they are found, a verdict for each log, and an exit code."""

from __future__ import annotations

import asyncio

import typer

from chatfold.cli.guard import FAILED, Failure, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import existing_store, load_settings
from chatfold.cli.progress import progress
from chatfold.cli.shapes import Problem, Verified
from chatfold.cli.sources import named
from chatfold.logcheck import Verdict, verify_log
from chatfold.replaying.logs import LogSource
from chatfold.sweep import count_chats
from chatfold.verification import verify_all, verify_chat
from events.errors import LogFileError
from store import open_store


def run_verify(
    out: Out, source: str | None, *, everything: bool, json: bool, db: str | None, log_level: str | None
) -> None:
    """Verify; see the command.

    Raises:
        UsageProblem: Neither or both of a source and ``--all`` were given.
        typer.Exit: With 1, where something was found.
    """
    if (source is None) is not everything:
        raise UsageProblem("name a log file or a chat, or say --all, and only one of them")
    if source is None:
        fine = asyncio.run(_run_all(out, json=json, db=db, log_level=log_level))
    else:
        verdict = _verdict(out, named(source, db, log_level), json=json)
        _print(out, verdict, json=json)
        fine = not verdict.findings
    if not fine:
        raise typer.Exit(FAILED)


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
        note = f"{checked} chats verified, {bad} with problems"
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
        said = f"{count} problem{'s' if count != 1 else ''}" if count else "ok"
        out.data.line(printable(f"{verdict.chat}: {said}, {verdict.version} events, {verdict.digest.hex()[:16]}"))
