"""Reading a log, wherever it is: from a file, from stdin, or from the store.

Owns the form that the other commands get a log in, and what becomes of one that is not as it was written: it is shown,
as far as it can be, under a warning, and the command fails.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import typer
from msgspec import Struct

from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.logs import set_up
from chatfold.cli.output import Out
from chatfold.cli.places import STDIN, existing_store, is_file, load_settings
from chatfold.transfer import stored_log
from events.codec import decode
from events.digest import verify_chain
from events.envelope import Recorded, StoredEvent
from events.errors import DigestMismatch
from events.logfile import LogFile, read_log
from store import open_store


class Log(Struct, frozen=True, kw_only=True):
    """A log as it was read. ``name`` is what to call it: the chat's id, or the file."""

    name: str
    chat: str
    events: tuple[StoredEvent, ...]
    blobs: Mapping[str, bytes]

    def recorded(self) -> list[Recorded]:
        """Return the decoded events.

        Raises:
            EventsError: One of them cannot be read.
        """
        return [decode(stored, blobs=self.blobs) for stored in self.events]


@contextmanager
def opened(out: Out, source: str, db: str | None, log_level: str | None) -> Iterator[Log]:
    """Give the log that an argument names; where it was altered, say so first, and fail in the end.

    Raises:
        UsageProblem: There is no such file.
        LogFileError: It is no log.
        ChatNotFound: There is no such chat.
        StoreError: The store cannot be opened.
        typer.Exit: With 1, where the log is not as it was written.
    """
    log = asyncio.run(_read_source(source, db, log_level))
    altered = None
    try:
        verify_chain(log.events, log.blobs)
    except DigestMismatch as error:
        altered = error
        what = f"{log.name} was altered, from version {error.version} on: {error.why}"
        out.warn(f"{what}; `chatfold verify` says more")
    yield log
    if altered is not None:
        raise typer.Exit(FAILED)


async def _read_source(source: str, db: str | None, log_level: str | None) -> Log:
    if is_file(source):
        if log_level is not None:
            set_up(log_level)
        file = read_file(source)
        return Log(name=file_name(source), chat=file.header.chat, events=file.events, blobs=file.blobs)
    settings = load_settings(db, log_level)
    async with open_store(existing_store(settings)) as store:
        loaded = await stored_log(store, source, blobs=True)
    return Log(name=source, chat=source, events=loaded.events, blobs=loaded.blobs)


def read_file(source: str) -> LogFile:
    """Return the log in a file or on stdin.

    Raises:
        UsageProblem: There is no such file.
        LogFileError: It is no log.
    """
    if source == STDIN:
        return _read(sys.stdin.buffer, file_name(source))
    path = Path(source)
    if path.is_dir():
        raise UsageProblem(f"{source} is a folder; name a log file, as `chatfold export` writes it")
    try:
        with path.open("rb") as lines:
            return _read(lines, source)
    except FileNotFoundError:
        raise UsageProblem(
            f"there is no file {source} (a name with a path separator or .jsonl is a file, any other a chat's id)"
        ) from None


def _read(lines: IO[bytes], name: str) -> LogFile:
    return read_log(lines, name)


def file_name(source: str) -> str:
    """Return what to call a file in messages."""
    return "<stdin>" if source == STDIN else source
