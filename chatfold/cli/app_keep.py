"""Commands that move chats and the store: ``export``, ``import``, ``adopt``, ``record``, ``migrate``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from pathlib import Path
from typing import Annotated

import typer

from chatfold.cli.options import ChatId, Db, Jobs, Json, LogLevel
from chatfold.cli.output import Out


def export(
    source: ChatId,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
    blobs: Annotated[
        bool, typer.Option("--blobs", help="Pack large contents too, so that the file is complete by itself.")
    ] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Write a chat's log as JSON Lines: a header, then one event a line, byte for byte as it is stored.

    The lines are JSON with or without --json, which only makes the talk about --output JSON too.

    \b
    Examples:
      chatfold export CHAT > chat.jsonl
      chatfold export CHAT --blobs --output chat.jsonl
    """
    from chatfold.cli.moving import run_export

    run_export(Out(), source, output, blobs=blobs, json=json, db=db, log_level=log_level)


def import_chat(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A log file; - for stdin.")],
    as_id: Annotated[
        str | None, typer.Option("--as", metavar="ID", help="The id it shall have here, instead of its own.")
    ] = None,
    adopt: Annotated[bool, typer.Option("--adopt", help="Take it over: from now on it runs here.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Bring a log file into the store. An id that is in use is refused.

    The chat is foreign: it can be read, replayed, forked and exported, and nobody runs it, unless you --adopt it now
    or `chatfold adopt` it later.

    \b
    Examples:
      chatfold import chat.jsonl
      chatfold import chat.jsonl --as copy-1 --adopt
    """
    from chatfold.cli.moving import run_import

    run_import(Out(), file, as_id=as_id, adopt=adopt, json=json, db=db, log_level=log_level)


def adopt(chat: ChatId, db: Db = None, json: Json = False, log_level: LogLevel = None) -> None:
    """Take over a chat that was imported: from now on it runs here.

    Nobody else may run it any more; the store that it came from does not know.

    \b
    Examples:
      chatfold adopt CHAT
    """
    from chatfold.cli.moving import run_adopt

    run_adopt(Out(), chat, json=json, db=db, log_level=log_level)


def record(
    sources: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|CHAT...", help="Log files, folders, patterns, or chats' ids."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write to.", show_default=False)
    ] = Path("recorded"),
    redact: Annotated[
        Path | None,
        typer.Option("--redact", metavar="RULES", help="Rules (TOML): which names and fields stay. Else the defaults."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="What replacements follow from: the same key, the same files."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats of the store.")] = False,
    errors: Annotated[bool, typer.Option("--errors", help="Only logs in which a turn failed.")] = False,
    drift: Annotated[
        bool, typer.Option("--drift", help="Only logs of which today's rules decide something else.")
    ] = False,
    covers: Annotated[
        list[str] | None,
        typer.Option("--covers", metavar="TRIGGER", help="Only logs with this transition. May be repeated: or that."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only logs that went on since: 2026-11-28, 12h, 7d."),
    ] = None,
    jobs: Jobs = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Write logs that may enter a repository: what happened stays, what was said is replaced.

    Facts stay byte for byte, but names (users, chats, labels, ids of others) are mapped; tools, agents and models stay,
    unless the rules say otherwise. Every text, file, argument and error message is replaced by one of the same size.
    Each log is checked before it is written: it folds and decides as the original does, and nothing that was said is
    left. What the facts have in clear is listed: read it before you commit. Without names of logs but with a filter,
    all chats of the store are looked at. Exit code 1: a log could not be recorded.

    \b
    Examples:
      chatfold record CHAT --output tests/logs
      chatfold record CHAT --redact rules.toml --key redact.key -o tests/logs
      chatfold record --errors --since 7d -o tests/logs
      chatfold record "exported/*.jsonl" --covers submit_results -o tests/logs
    """
    from chatfold.cli.record import Asked, run_record

    asked = Asked(
        everything=everything,
        errors=errors,
        drift=drift,
        covers=tuple(covers or ()),
        since=since,
        redact=redact,
        key=key,
        output=output,
        jobs=jobs,
    )
    run_record(Out(), sources or [], asked, json=json, db=db, log_level=log_level)


def migrate(
    finish: Annotated[
        bool,
        typer.Option(
            "--finish", help="All workers run this release now: let it write what the one before cannot read."
        ),
    ] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Bring the database to the schema of this release. A new SQLite file is set up by itself.

    To upgrade a service without a pause: migrate, replace its processes one by one, then --finish. Until then workers
    of both releases share the database. --finish is refused while a worker of an older release lives.

    \b
    Examples:
      chatfold migrate --db postgresql://me@db/chats
      chatfold migrate --finish
    """
    from chatfold.cli.moving import run_migrate

    run_migrate(Out(), finish=finish, json=json, db=db, log_level=log_level)
