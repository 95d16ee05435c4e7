"""Commands that check what is kept and mend what can be made anew: ``verify``, ``repair``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from typing import Annotated

import typer

from chatfold.cli.options import Db, Json, LogLevel
from chatfold.cli.output import Out


def verify(
    source: Annotated[str | None, typer.Argument(metavar="FILE|CHAT", help="A log file or a chat's id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats of the store.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Check that a log is as it was written and says nothing that was not allowed.

    Digests, the fold, invariants, the audit of every step; of a stored chat also that its header is what its log
    folds to, and that its segments, its uses of large contents and its places in the feed fit it. Exit code 1:
    something was found.

    \b
    Examples:
      chatfold verify CHAT
      chatfold verify saved.jsonl
      chatfold verify --all --json
    """
    from chatfold.cli.verify import run_verify

    run_verify(Out(), source, everything=everything, json=json, db=db, log_level=log_level)


def repair(
    chat: Annotated[str | None, typer.Argument(metavar="CHAT", help="A chat's id.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All chats of the store.")] = False,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Make anew what a chat's log says otherwise: its header, its segments, its notes of large contents in use.

    The log itself is never changed: one that was altered is refused, and the version is named. Exit code 1: something
    could not be mended.

    \b
    Examples:
      chatfold repair CHAT
      chatfold repair --all
    """
    from chatfold.cli.repair import run_repair

    run_repair(Out(), chat, everything=everything, json=json, db=db, log_level=log_level)
