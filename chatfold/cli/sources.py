"""Logs as commands get them: from a file, from stdin, or from the store.

Owns what becomes of a log that is not as it was written: it is shown, as far as it can be, under a warning, and the
command fails. Reading is ``chatfold.replaying.logs``'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from chatfold.cli.guard import FAILED
from chatfold.cli.logs import set_up
from chatfold.cli.output import Out
from chatfold.cli.places import existing_store, load_settings
from chatfold.replaying.logs import Log, LogSource, find_log, find_logs


@contextmanager
def opened(out: Out, source: str, db: str | None, log_level: str | None) -> Iterator[Log]:
    """Give the log that an argument names; where it was altered, say so first, and fail in the end.

    Raises:
        SourceNotFound: There is no such file.
        UsageProblem: There is no such database.
        LogFileError: It is no log.
        ChatNotFound: There is no such chat.
        StoreError: The store cannot be opened.
        typer.Exit: With 1, where the log is not as it was written.
    """
    log = named(source, db, log_level).read()
    altered = log.altered()
    if altered is not None:
        what = f"{log.name} was altered, from version {altered.version} on: {altered.why}"
        out.warn(f"{what}; `chatfold verify` says more")
    yield log
    if altered is not None:
        raise typer.Exit(FAILED)


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


def _listen(log_level: str | None) -> None:
    if log_level is not None:
        set_up(log_level)
