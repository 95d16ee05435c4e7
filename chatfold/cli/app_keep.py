"""Commands that move chats and the store: ``export``, ``import``, ``adopt``, ``migrate``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from pathlib import Path
from typing import Annotated

import typer

from chatfold.cli.options import ChatId, Db, Json, LogLevel
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
