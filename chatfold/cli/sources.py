"""Logs as commands get them: from a file, from stdin, or from the store.

Owns what becomes of a log that is not whole, in each command that reads one: it is shown, as far as it can be, under a
warning, and the command fails. Reading is ``chatfold.replaying.logs``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import typer

from chatfold.cli.guard import FAILED, UsageProblem
from chatfold.cli.logs import set_up
from chatfold.cli.output import Out
from chatfold.cli.places import existing_store, load_settings
from chatfold.replaying.logs import Log, LogSource, exists, find_log, find_logs


@contextmanager
def opened(out: Out, source: str, db: str | None, log_level: str | None) -> Iterator[Log]:
    """Give the log that an argument names; where it is not whole, say so first, and fail in the end.

    Raises:
        SourceNotFound: There is no such file.
        UsageProblem: There is no such database.
        LogFileError: It is no log.
        ChatNotFound: There is no such chat.
        StoreError: The store cannot be opened.
        typer.Exit: With 1, where the log is not whole.
    """
    with opened_with_fault(out, source, db, log_level) as (log, _):
        yield log


@contextmanager
def opened_with_fault(out: Out, source: str, db: str | None, log_level: str | None) -> Iterator[tuple[Log, str | None]]:
    """Give a log as ``opened``, and what is wrong with it, for commands that say it in their answer too."""
    log = named(source, db, log_level).read()
    fault = warned(out, log)
    yield log, fault
    if fault is not None:
        raise typer.Exit(FAILED)


def warned(out: Out, log: Log) -> str | None:
    """Return what is wrong with a log as a whole, once a warning says it; None where it is whole."""
    fault = log.fault()
    if fault is not None:
        out.warn(f"{log.name} {fault}; `chatfold verify` says more")
    return fault


def named(source: str, db: str | None, log_level: str | None) -> LogSource:
    """Return where the log is that an argument names, and set up logging. Settings are read for chats alone.

    Raises:
        UsageProblem: The database that should have it does not exist.
    """
    _listen(log_level)
    return find_log(source, lambda: existing_store(load_settings(db, log_level)))


def all_named(sources: list[str], db: str | None, log_level: str | None) -> list[LogSource]:
    """Return where the logs are that arguments name, and set up logging. Settings are read for chats alone.

    Raises:
        SourceNotFound: A folder or a pattern has none, or stdin is named beside others.
        UsageProblem: The database that should have a chat does not exist.
    """
    _listen(log_level)
    return find_logs(sources, lambda: existing_store(load_settings(db, log_level)))


def all_chats(db: str | None, log_level: str | None) -> list[LogSource]:
    """Return where the logs of all chats of the store are, in the order of their ids, and set up logging.

    Raises:
        UsageProblem: The database does not exist.
    """
    # A store brings its database's driver; who reads files should not wait for it.
    from chatfold.sweep import chat_ids
    from store import open_store

    url = existing_store(load_settings(db, log_level))

    async def ids() -> list[str]:
        async with open_store(url) as store:
            return [chat async for chat in chat_ids(store)]

    return [LogSource("chat", chat, url) for chat in asyncio.run(ids())]


def must_be_there(logs: Iterable[LogSource]) -> None:
    """Check that files are there before the work on many begins: one that is not is a wrong command line.

    Raises:
        SourceNotFound: One is not.
    """
    for source in logs:
        if source.place == "file" and not exists(source.where):
            source.read()  # says what is wrong


def must_have(name: str, version: int | None, last: int, *, least: int = 0) -> None:
    """Check that a log has the version that was typed.

    Args:
        name: The log's.
        version: It; None where none was typed.
        last: The log's last one.
        least: The lowest that can be meant; 0 is before the first event.

    Raises:
        UsageProblem: It has not.
    """
    if version is not None and not least <= version <= last:
        raise UsageProblem(f"{name} has no version {version}; its last is {last}")


def _listen(log_level: str | None) -> None:
    if log_level is not None:
        set_up(log_level)
