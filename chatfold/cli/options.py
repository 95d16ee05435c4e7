"""Arguments and options that several commands have, so that they are named and explained once."""

from typing import Annotated

import typer

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help="The store: sqlite:///chats.db, postgresql://user@host/database. Also CHATFOLD_DB or the setting db; "
        "else a file in your data folder.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, one object a line.")]
LogLevel = Annotated[
    str | None,
    typer.Option("--log-level", metavar="LEVEL", help="Log to stderr: debug, info, warning or error."),
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agents",
        metavar="MODULE:NAME",
        help="Load agents of an application: an Agent, several, or a function that returns them. May be repeated.",
    ),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE|CHAT",
        help="A log file (it has a path separator, ends in .jsonl, exists, or is - for stdin), or a chat's id.",
    ),
]
ChatId = Annotated[str, typer.Argument(metavar="CHAT", help="The chat's id.")]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE|CHAT...",
        help="Log files (with a path separator, ending in .jsonl, existing, or - for stdin), folders (all .jsonl files "
        "in them and below), patterns (** for any folders), or chats' ids.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="COUNT",
        min=1,
        help="Processes at once; 1 for this one alone. As many as there are cores, where nothing is said.",
    ),
]
