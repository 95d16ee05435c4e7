"""``verify``: findings as they are found, a verdict for each log, and an exit code."""

from __future__ import annotations

import asyncio

import typer

from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import existing_store, is_file, load_settings
from chatfold.cli.progress import progress
from chatfold.cli.shapes import Problem, Verified
from chatfold.cli.sources import file_name, read_file
from chatfold.sweep import count_chats
from chatfold.verification import Verdict, verify_all, verify_chat, verify_log
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
    if not asyncio.run(_run(out, source, json=json, db=db, log_level=log_level)):
        raise typer.Exit(FAILED)


async def _run(out: Out, source: str | None, *, json: bool, db: str | None, log_level: str | None) -> bool:
    if source is None:
        return await _run_all(out, json=json, db=db, log_level=log_level)
    verdict = await _verdict(out, source, json=json, db=db, log_level=log_level)
    _print(out, verdict, json=json)
    return not verdict.findings


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


async def _verdict(out: Out, source: str, *, json: bool, db: str | None, log_level: str | None) -> Verdict:
    if is_file(source):
        return _file(out, source, json=json)
    async with open_store(existing_store(load_settings(db, log_level))) as store:
        return await verify_chat(store, source)


def _file(out: Out, source: str, *, json: bool) -> Verdict:
    name = file_name(source)
    try:
        file = read_file(source)
    except LogFileError as error:
        if json:
            problem = f"line {error.line}: {error.why}"
            out.data.json(Problem(chat=name, version=None, check="form", problem=problem))
        raise
    return verify_log(name, file.events, file.blobs)


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
