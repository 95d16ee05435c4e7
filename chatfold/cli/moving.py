"""``export``, ``import``, ``adopt``, ``migrate``: chats out of a store and into it, and the store to a new schema."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import typer

from chatfold.cli.guard import FAILED, Failure, UsageProblem
from chatfold.cli.output import Out, printable
from chatfold.cli.places import existing_store, load_settings, store_url
from chatfold.cli.shapes import Adopted, Exported, Imported, Migrated
from chatfold.cli.typed import told_as
from chatfold.engine import Engine
from chatfold.files import write_whole
from chatfold.replaying.logs import file_name, read_file
from chatfold.settings import Settings
from chatfold.transfer import ImportedChat, LoadedLog, stored_log
from events.counting import counted
from events.errors import DigestMismatch
from events.logfile import LogFile
from store import open_store, redacted
from store.notes import LivingWorker
from store.schema import READER_LEVEL


def run_export(
    out: Out, chat: str, output: Path | None, *, blobs: bool, json: bool, db: str | None, log_level: str | None
) -> None:
    """Export a chat; see the command."""
    settings = load_settings(db, log_level)
    log = asyncio.run(_load(existing_store(settings), chat, blobs=blobs))
    if output is None:
        for line in log.lines():
            out.data.lines(line)
        return
    _write(log, output)
    if json:
        exported = Exported(chat=chat, version=len(log.events), blobs=len(log.blobs), file=str(output))
        out.data.json(exported)
    else:
        out.note(f"wrote {counted(len(log.events), 'event')} to {output}")


async def _load(url: str, chat: str, *, blobs: bool) -> LoadedLog:
    async with open_store(url) as store:
        return await stored_log(store, chat, blobs=blobs)


def _write(log: LoadedLog, output: Path) -> None:
    """Write the file whole or not at all.

    Raises:
        UsageProblem: It is a folder.
        Failure: It cannot be written; names it, and not the file that is written first.
    """
    if output.is_dir():
        raise UsageProblem(f"{output} is a folder; name a file")
    try:
        write_whole(output, log.lines())
    except OSError as error:
        raise Failure(f"{output}: {error.strerror}") from error


def run_import(
    out: Out, file: str, *, as_id: str | None, adopt: bool, json: bool, db: str | None, log_level: str | None
) -> None:
    """Import a log file; see the command.

    Raises:
        Failure: The log is not as it was written.
    """
    log = read_file(file)
    settings = load_settings(db, log_level)
    try:
        with told_as(as_id="--as"):
            imported = asyncio.run(_import(settings, log, name=file_name(file), as_id=as_id, adopt=adopt))
    except DigestMismatch as error:
        raise Failure(
            f"{file_name(file)} is not as it was written ({error}); `chatfold verify` says more, nothing was imported"
        ) from error
    if json:
        line = Imported(
            chat=imported.chat,
            version=imported.version,
            foreign=not adopt,
            missing_blobs=len(imported.missing_blobs),
        )
        out.data.json(line)
    else:
        out.data.line(printable(imported.chat))
        out.note(
            "it runs here from now on"
            if adopt
            else f"it is foreign: nobody runs it (`{adopting(imported.chat, db)}` takes it over)"
        )
    if log.header.is_redacted:
        out.note("it was redacted, and a store does not say so of a chat: run the file again, and not the chat")
    if imported.missing_blobs:
        missing = counted(len(imported.missing_blobs), "large content is", "large contents are")
        out.note(f"{missing} missing; `chatfold export --blobs` packs them")


async def _import(settings: Settings, log: LogFile, *, name: str, as_id: str | None, adopt: bool) -> ImportedChat:
    async with Engine(store_url(settings), worker=False, settings=settings) as engine:
        return await engine.import_log(log, name=name, as_id=as_id, adopt=adopt)


def adopting(chat: str, db: str | None) -> str:
    """Return the command that takes a foreign chat over, in the store that was named on the command line or not."""
    return shlex.join(["chatfold", "adopt", chat, *(("--db", db) if db is not None else ())])


def run_adopt(out: Out, chat: str, *, json: bool, db: str | None, log_level: str | None) -> None:
    """Take a foreign chat over; see the command."""
    settings = load_settings(db, log_level)
    with told_as(chat="CHAT"):
        version = asyncio.run(_adopt(existing_store(settings), settings, chat))
    if json:
        out.data.json(Adopted(chat=chat, version=version))
    else:
        out.note("it runs here from now on")


async def _adopt(url: str, settings: Settings, chat: str) -> int:
    async with Engine(url, worker=False, settings=settings) as engine:
        return (await engine.adopt(chat)).version


def run_migrate(out: Out, *, finish: bool, json: bool, db: str | None, log_level: str | None) -> None:
    """Migrate the database; see the command.

    Raises:
        UsageProblem: An upgrade shall be finished of a database that does not exist.
        typer.Exit: With 1, where a worker of an older release lives.
    """
    from store.migrate import migrate
    from store.schema import NEEDED

    settings = load_settings(db, log_level)
    url = existing_store(settings) if finish else store_url(settings)
    migrate(url)
    older = asyncio.run(_finish(url)) if finish else []
    if older:
        known = ", ".join(f"{each.note.process or each.worker} (release {each.note.release})" for each in older)
        out.note(f"not finished: workers of an older release are alive: {known}")
        raise typer.Exit(FAILED)
    if json:
        out.data.json(Migrated(database=redacted(url), schema=NEEDED))
    else:
        finished = "; what only this release can read may be written from now on" if finish else ""
        out.note(f"{redacted(url)} has schema {NEEDED}{finished}")


async def _finish(url: str) -> list[LivingWorker]:
    """Raise the database's write level, unless workers live that could not read what is written then; return those."""
    async with open_store(url) as store:
        now = await store.now()
        older = [
            each
            for each in await store.list_workers()
            if each.expires_at > now and each.note.reader_level < READER_LEVEL
        ]
        if not older:
            await store.raise_write_level(READER_LEVEL)
        return older
