"""Commands of a corpus: ``corpus check``, ``corpus coverage``, ``corpus add``, ``corpus refold``.

How they are typed and what their help says; what they do is loaded when they run.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from chatfold.cli.guard import guarded, help_without_command
from chatfold.cli.options import Agents, Db, Jobs, Json, LogLevel, Source
from chatfold.cli.output import Out

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of logs, and what stands beside them.")]

group: Final = typer.Typer(
    name="corpus",
    help="Stored logs as the tests of a release: check that today's code does with them what it did.",
    invoke_without_command=True,
    callback=help_without_command,
    rich_markup_mode=None,
)


def check(
    folder: Folder,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="CHECKS", help="Make these checks alone, such as read,fold,decide."),
    ] = None,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """Check every log of a corpus against today's code, and say the first thing that is wrong with each.

    The checks, in their order: it is as it was written (read); it folds to the states that are written down beside it
    (fold); each step in it is legal (audit); each decision is the one that is taken today (decide); services would take
    each prompt (prompts); the chat comes out again when it is run through the engine (rerun). No model is called, no
    tool is run, no connection is opened. Exit code 1: something is wrong.

    \b
    Examples:
      chatfold corpus check tests/corpus
      chatfold corpus check tests/corpus --only read,fold,decide --json
    """
    from chatfold.cli.corpus import run_check

    run_check(Out(), folder, only=only, jobs=jobs, json=json)


def coverage(
    folder: Folder,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Write a picture of the transitions too.")
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Name everything that no log has.")] = False,
    json: Json = False,
) -> None:
    """Say which transitions, rules, events, errors, values and fields the logs of a corpus have, and which none has.

    A change of code that no log exercises goes unseen by `corpus check`.

    \b
    Examples:
      chatfold corpus coverage tests/corpus --missing
      chatfold corpus coverage tests/corpus --svg coverage.svg
    """
    from chatfold.cli.corpus import run_coverage

    run_coverage(Out(), folder, svg=svg, missing=missing, json=json)


def add(
    source: Source,
    folder: Folder,
    note: Annotated[
        str,
        typer.Option("--note", metavar="TEXT", help="Required: what wrote it, and what its failure means."),
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Its name in the corpus; that of the file without it.")
    ] = None,
    agents: Agents = None,
    db: Db = None,
    json: Json = False,
    log_level: LogLevel = None,
) -> None:
    """Add a log to a corpus, with the states that today's code folds it to.

    Look at it first: what is wrong in it now is what it will be held to. Logs of a corpus are never changed. One from
    production is better recorded without what was said: see `chatfold record`. What the agents that wrote it say in
    each request is kept too, where they are named, so that its requests can be made again and compared.

    \b
    Examples:
      chatfold corpus add stopped.jsonl tests/corpus --note "the agent stopped after an empty answer"
      chatfold corpus add stopped.jsonl tests/corpus --note "an empty answer" --agents myservice.agents:AGENTS
    """
    from chatfold.cli.corpus import run_add

    run_add(Out(), source, folder, note=note, name=name, agents=agents, db=db, json=json, log_level=log_level)


def refold(folder: Folder, json: Json = False) -> None:
    """Write the fold expectations of all logs of a corpus anew, by what today's code folds them to.

    This is for a change of states that was meant, and for a corpus of an earlier release, whose expectations say less.
    Look at what changed before you commit it: whatever today's code does wrong is what the logs are held to then.

    \b
    Examples:
      chatfold corpus refold tests/corpus
    """
    from chatfold.cli.corpus import run_refold

    run_refold(Out(), folder, json=json)


for _command in (check, coverage, add, refold):
    group.command(_command.__name__)(guarded(_command))
